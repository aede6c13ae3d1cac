package transport

// Copy copies src over dst, which is as long.
//
// From 1 MiB on the built-in copy leaves the caches out on some processors,
// which is right for memory that nobody reads soon. What a rank receives it
// does read, so Copy goes in shorter pieces as long as all of it stays in cache.
func Copy(dst, src []byte) {
	const past, piece, cached = 1 << 20, 512 << 10, 2 << 20
	if past <= len(src) && len(src) < cached {
		for len(src) > piece {
			copy(dst, src[:piece])
			dst, src = dst[piece:], src[piece:]
		}
	}
	copy(dst, src)
}
