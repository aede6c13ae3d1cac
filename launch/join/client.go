package join

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"
)

const (
	// answerLimit is how long the launcher's server may take for an answer that does
	// not depend on other ranks.
	answerLimit = 60 * time.Second

	// abortWait is how long the launcher may take to answer, or kill, a rank that has
	// asked for the end of the job.
	abortWait = 5 * time.Second
)

// errSilent is the cause of a context that ended because the server did not answer.
var errSilent = fmt.Errorf("%v have passed", answerLimit)

// A client exchanges messages of type T with the launcher's server, one request at a
// time. Its methods may not be called by several goroutines at once.
type client[T any] struct {
	conn    net.Conn
	answers chan T
	ended   chan struct{} // closed when the connection has ended
	endErr  error         // why; to be read after ended is closed
	gone    chan struct{} // closed when it has ended although close or leave was not called
	leaving atomic.Bool
	closed  chan struct{}
	broken  error // an answer is outstanding, so that no other request makes sense
}

// newClient reads messages from conn until it ends, by read.
func newClient[T any](conn net.Conn, bufferSize int, read func(*bufio.Reader) (T, error)) *client[T] {
	c := &client[T]{
		conn: conn, answers: make(chan T),
		ended: make(chan struct{}), gone: make(chan struct{}), closed: make(chan struct{}),
	}
	go func() {
		defer close(c.ended)
		r := bufio.NewReaderSize(conn, bufferSize)
		for {
			message, err := read(r)
			if err != nil {
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					err = errors.New("the launcher has closed the connection")
				}
				c.endErr = err
				if !c.leaving.Load() {
					close(c.gone)
				}
				return
			}
			select {
			case c.answers <- message:
			case <-c.closed:
				c.endErr = net.ErrClosed
				return
			}
		}
	}()
	return c
}

// ask sends a request and returns the answer. It waits until ctx ends, but not longer
// than answerLimit unless forRanks says that the server waits for other ranks.
func (c *client[T]) ask(ctx context.Context, what string, request []byte, forRanks bool) (T, error) {
	if err := c.send(what, request); err != nil {
		return *new(T), err
	}
	return c.answer(ctx, what, forRanks)
}

// send sends a request, in one write because some servers read it at once.
func (c *client[T]) send(what string, request []byte) error {
	if c.broken != nil {
		return c.broken
	}
	c.conn.SetWriteDeadline(time.Now().Add(answerLimit))
	if _, err := c.conn.Write(request); err != nil {
		c.broken = fmt.Errorf("%s: %w", what, err)
		select {
		case <-c.ended: // says more
			c.broken = fmt.Errorf("%s: %w", what, c.endErr)
		default:
		}
	}
	return c.broken
}

// answer waits for the server's next message.
func (c *client[T]) answer(ctx context.Context, what string, forRanks bool) (message T, err error) {
	if !forRanks {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, answerLimit, errSilent)
		defer cancel()
	}
	select {
	case message = <-c.answers:
		return message, nil
	case <-c.ended:
		c.broken = fmt.Errorf("%s: %w", what, c.endErr)
	case <-ctx.Done():
		c.broken = fmt.Errorf("%s: the launcher has not answered: %w", what, context.Cause(ctx))
	}
	return message, c.broken
}

// leave says that the connection may end from now on.
func (c *client[T]) leave() { c.leaving.Store(true) }

// abort sends the request to end the job, and gives the launcher time to do it.
func (c *client[T]) abort(request []byte) error {
	c.leave()
	if err := c.send("abort", request); err != nil {
		return err
	}
	timer := time.NewTimer(abortWait)
	defer timer.Stop()
	select {
	case <-c.answers:
	case <-c.ended:
	case <-timer.C:
	}
	return nil
}

// close ends the connection. It is called once.
func (c *client[T]) close() {
	c.leave()
	close(c.closed)
	c.conn.Close()
	<-c.ended
}

func (c *client[T]) lost() <-chan struct{} { return c.gone }

// dial connects to a launcher's server.
func dial(ctx context.Context, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: answerLimit}
	return d.DialContext(ctx, "tcp", addr)
}
