package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"
)

const (
	// ConnectTimeout bounds how long the system of the other end may take to make a
	// connection.
	ConnectTimeout = 10 * time.Second

	// HeadStart is how long Dial tries an address before it tries the next one beside it.
	HeadStart = 250 * time.Millisecond

	// namedMax is how many addresses of one name Dial tries.
	namedMax = 16
)

// Dial connects to a process that listens at one of several addresses, as [Split] returns
// them. It looks up names anew. It tries the addresses in order, each after [HeadStart] or
// when one before it has failed, and takes the first whose handshake succeeds. The
// handshake returns what is to be used of the connection, which may be the connection
// itself; Dial closes all others. A connection is closed when ctx ends before its handshake
// does; there is no other limit to a handshake.
//
// The error is a [*DialError], which says of each address why it was of no use.
func Dial[C io.Closer](ctx context.Context, addresses []string, handshake func(ctx context.Context, conn net.Conn) (C, error)) (C, error) {
	return dial(ctx, &system, addresses, handshake)
}

// A DialError says why a process was reached at none of its addresses.
type DialError struct {
	Attempts []Attempt // one for each address, and for each address of a name
	Cause    error     // why the context has ended, if it has
}

// An Attempt is an address that was tried.
type Attempt struct {
	Address string
	Err     error
}

func (e *DialError) Error() string {
	var b strings.Builder
	for i, a := range e.Attempts {
		if i > 0 {
			b.WriteString("; ")
		}
		err := a.Err
		if op := new(net.OpError); errors.As(err, &op) && op.Op == "dial" {
			err = op.Err // without the address once more
		}
		fmt.Fprintf(&b, "%s: %v", a.Address, err)
	}
	switch {
	case e.Cause == nil:
		return b.String()
	case len(e.Attempts) == 0:
		return e.Cause.Error()
	}
	return fmt.Sprintf("%v (%s)", e.Cause, b.String())
}

// Unwrap returns the errors of all attempts, and the cause.
func (e *DialError) Unwrap() []error {
	errs := make([]error, 0, len(e.Attempts)+1)
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	return errs
}

// A resolver looks up names.
type resolver struct {
	lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
}

var system = resolver{net.DefaultResolver.LookupNetIP}

var (
	errNoConnection = errors.New("no connection until then")
	errNoAnswer     = errors.New("connected, but no answer until then")
)

func dial[C io.Closer](ctx context.Context, r *resolver, addresses []string, handshake func(context.Context, net.Conn) (C, error)) (C, error) {
	won, attempts := race(ctx, len(addresses), func(ctx context.Context, n int) (C, []Attempt) {
		return dialName(ctx, r, addresses[n], handshake)
	})
	if attempts == nil {
		return won, nil
	}
	return won, &DialError{Attempts: attempts, Cause: context.Cause(ctx)}
}

// dialName tries all addresses of a name, or the one that an address is.
func dialName[C io.Closer](ctx context.Context, r *resolver, address string, handshake func(context.Context, net.Conn) (C, error)) (won C, failed []Attempt) {
	if literal, err := netip.ParseAddrPort(address); err == nil {
		won, err := dialAddress(ctx, literal, handshake)
		if err != nil {
			failed = []Attempt{{address, err}}
		}
		return won, failed
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return won, []Attempt{{address, err}}
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return won, []Attempt{{address, err}}
	}
	found, err := r.lookup(ctx, "ip", host)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("the name was not looked up until then")
		}
		return won, []Attempt{{address, err}}
	}
	found = found[:min(len(found), namedMax)]
	return race(ctx, len(found), func(ctx context.Context, n int) (won C, failed []Attempt) {
		a := netip.AddrPortFrom(found[n].Unmap(), uint16(number))
		won, err := dialAddress(ctx, a, handshake)
		if err != nil {
			failed = []Attempt{{fmt.Sprintf("%s at %s", address, a), err}}
		}
		return won, failed
	})
}

// dialAddress tries one address.
func dialAddress[C io.Closer](ctx context.Context, a netip.AddrPort, handshake func(context.Context, net.Conn) (C, error)) (won C, err error) {
	d := net.Dialer{Timeout: ConnectTimeout}
	if a.Addr().IsLoopback() {
		d.Control = unpaced
	}
	conn, err := d.DialContext(ctx, "tcp", a.String())
	if err != nil {
		if ctx.Err() != nil {
			err = errNoConnection
		}
		return won, err
	}
	_ = WatchHost(conn) // without it, a lost host is noticed later
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	won, err = handshake(ctx, conn)
	switch ended := !stop(); {
	case err != nil && ended:
		err = errNoAnswer
	case err != nil:
	case ended:
		won.Close()
		err = errNoAnswer
	}
	if err != nil {
		conn.Close()
	}
	return won, err
}

// race makes attempts in order, each HeadStart after the one before, or when one has
// failed. It returns the result of the first that does not fail, with a nil slice, and ends
// and closes the others; or else what has failed, in a slice that is not nil. It returns
// when all attempts have ended. Once ctx has ended, it begins none.
func race[C io.Closer](ctx context.Context, n int, attempt func(ctx context.Context, n int) (C, []Attempt)) (won C, failed []Attempt) {
	type outcome struct {
		n      int
		won    C
		failed []Attempt
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome)
	begun, running := 0, 0
	next := time.NewTimer(HeadStart)
	defer next.Stop()
	begin := func() {
		if begun == n || ctx.Err() != nil {
			return
		}
		number := begun
		begun++
		running++
		next.Reset(HeadStart)
		go func() {
			won, failed := attempt(ctx, number)
			outcomes <- outcome{number, won, failed}
		}()
	}
	all := make([][]Attempt, n)
	has := false
	for begin(); running > 0; {
		select {
		case <-next.C:
			begin()
		case o := <-outcomes:
			running--
			switch {
			case o.failed != nil:
				all[o.n] = o.failed
				begin()
			case has:
				o.won.Close()
			default:
				won, has = o.won, true
				cancel()
			}
		}
	}
	if has {
		return won, nil
	}
	failed = []Attempt{}
	for _, one := range all {
		failed = append(failed, one...)
	}
	return won, failed
}
