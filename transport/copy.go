package transport

// Copy copies src over dst, which is as long. Cached says that dst is best kept in
// cache.
//
// From 1 MiB on the built-in copy leaves the caches out on some processors,
// which is right for memory that nobody reads soon, or that is too long. So Copy
// goes in shorter pieces below 2 MiB, and beyond if it is told so.
func Copy(dst, src []byte, cached bool) {
	const past, piece, short = 1 << 20, 512 << 10, 2 << 20
	if past <= len(src) && (cached || len(src) < short) {
		for len(src) > piece {
			copy(dst, src[:piece])
			dst, src = dst[piece:], src[piece:]
		}
	}
	copy(dst, src)
}
