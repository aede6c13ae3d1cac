package proof

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Package crypto/tls has no keys that both ends share beforehand. Instead, both have the
// same certificate, which exists for one connection: its key is derived from the secret
// and from what the ends have proven themselves with. Both sign what was said, with
// different contexts, so that neither signature can be sent back. The channel is that of
// the two ranks that have proven themselves, and there is nothing in it that could be
// used for another one.

// errOtherKey says that the other end of a TLS connection is not the one that has proven
// the secret.
var errOtherKey = errors.New("the other end of the TLS connection has not the key of this connection")

// startTLS is the side of a connection that has dialed.
func (p *Prover) startTLS(ctx context.Context, conn net.Conn, n nonces) (net.Conn, error) {
	c := tls.Client(conn, p.config(n))
	switch err := c.HandshakeContext(ctx); {
	case errors.Is(err, errOtherKey):
		return nil, fmt.Errorf("what listens at %s: %w", conn.RemoteAddr(), err)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	return c, nil
}

// config returns the configuration of either end of a connection.
func (p *Prover) config(n nonces) *tls.Config {
	seed := sum(p.tlsKey, "key", n)
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err) // nothing in it depends on the peer
	}
	mine, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		panic(err)
	}
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		Certificates:                []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}},
		ClientAuth:                  tls.RequireAnyClientCert,
		SessionTicketsDisabled:      true,
		DynamicRecordSizingDisabled: true,
		InsecureSkipVerify:          true, // no authority signs the one certificate that there can be:
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) != 1 || subtle.ConstantTimeCompare(s.PeerCertificates[0].RawSubjectPublicKeyInfo, mine) != 1 {
				return errOtherKey
			}
			return nil
		},
	}
}
