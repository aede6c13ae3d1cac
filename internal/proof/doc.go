// Package proof lets the processes of a job prove to each other that they know the
// job's secret, before either of them reads anything else of the other. It is the same
// for control connections, for the data connections of package tcp, and for the socket over
// which ranks pass the memory that they share.
//
// The dialing side sends a challenge, the listener answers with its proof, and the dialing
// side checks that before it sends its own:
//
//	challenge   greeting · job 16 · from u32 · to u32 · nonce 32
//	answer      greeting · nonce 32 · HMAC(k, "server" · challenge · nonce of the listener)
//	proof       HMAC(k, "client" · challenge · nonce of the listener)
//
// A greeting has 16 bytes: "chorale\n" · version u16 · status u16 · mode u8 · zero u24. All
// lengths are fixed, so nothing that is allocated depends on the peer. The key k and
// the job, which is no secret, are derived from the secret; numbers are little-endian;
// HMAC is that of SHA-256.
//
// Each side has chosen a nonce, so that no recorded proof is of use. The words "server"
// and "client" differ, so that no proof can be sent back. A proof names the ranks of
// both ends, so that it is of no use at a third one. An answer with another status
// than 0 ends after its greeting: it says why the listener is not the one wanted. It is
// not proven, and serves the error message alone.
//
// The proof is about the beginning of a connection. It does not protect what follows,
// unless [Prover.TLS] has TLS follow (tls.go).
package proof
