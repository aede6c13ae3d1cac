package transport

// Copy copies src to dst, which has the same length. Temporal hints that dst is
// read again soon.
//
// From 1 MiB on the built-in copy uses non-temporal stores on some processors. That
// is right for memory that is not read soon or exceeds the cache. So Copy splits
// the copy into shorter ones below 2 MiB, and above if temporal is set.
func Copy(dst, src []byte, temporal bool) {
	const nonTemporalMin, piece, short = 1 << 20, 512 << 10, 2 << 20
	if nonTemporalMin <= len(src) && (temporal || len(src) < short) {
		for len(src) > piece {
			copy(dst, src[:piece])
			dst, src = dst[piece:], src[piece:]
		}
	}
	copy(dst, src)
}
