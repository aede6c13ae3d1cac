package join

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
)

// maxPMIxValue is the length of a value, in bytes. Servers take far more.
const maxPMIxValue = 8 << 10

// A pmixStore is the key store of a PMIx server.
type pmixStore struct {
	*client[pmixMessage]
	namespace string
	index     uint32   // which client of the server this is
	tag       uint32   // of the last request
	puts      []string // keys and values to be committed before the next fence
}

// connectPMIx opens the session, and asks for the size of the job.
func connectPMIx(ctx context.Context, p *Place, conn net.Conn, namespace, format string) (_ store, err error) {
	s := &pmixStore{
		client:    newClient(conn, 4<<10, pmixReader()),
		namespace: namespace, tag: firstPMIxTag - 1,
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	answer, err := s.ask(ctx, "hello", pmixHello(namespace, p.Rank, format, os.Getuid(), os.Getgid()), false)
	if err != nil {
		return nil, err
	}
	if status := int32(binary.BigEndian.Uint32(answer.body)); status != 0 {
		return nil, fmt.Errorf("hello: the launcher refuses rank %d: PMIx status %d", p.Rank, status)
	}
	s.index = binary.BigEndian.Uint32(answer.body[4:])
	size, err := s.jobSize(ctx)
	if err != nil {
		return nil, err
	}
	if p.Size != unknown && p.Size != size {
		return nil, fmt.Errorf("the launcher says that the job has %d ranks: want the number of OMPI_COMM_WORLD_SIZE", size)
	}
	p.Size = size
	return s, nil
}

// request sends a message and returns the answer without its status.
func (s *pmixStore) request(ctx context.Context, what string, body packer, forRanks bool) (unpacker, error) {
	s.tag++
	answer, err := s.ask(ctx, what, pmixRequest(s.index, s.tag, body), forRanks)
	if err != nil {
		return unpacker{}, err
	}
	u := unpacker{rest: answer.body}
	status := u.status()
	switch {
	case answer.tag != s.tag:
		err = fmt.Errorf("%s: the launcher answers request %d: want %d", what, answer.tag, s.tag)
	case u.err != nil:
		err = fmt.Errorf("%s: %w", what, u.err)
	case status != 0:
		err = fmt.Errorf("%s: the launcher refuses: PMIx status %d", what, status)
	}
	return u, err
}

func (s *pmixStore) maxValue() int { return maxPMIxValue }

func (s *pmixStore) put(_ context.Context, key, value string) error {
	s.puts = append(s.puts, key, value)
	return nil
}

// commit hands over what was put.
func (s *pmixStore) commit(ctx context.Context) error {
	var values packer
	for pair := range slices.Chunk(s.puts, 2) {
		values.item()
		values.string(pair[0])
		values.u16(pmixString)
		values.string(pair[1])
	}
	s.puts = nil
	var p packer
	p.command(pmixCommit)
	p.item()
	p.u8(pmixGlobal)
	p.item()
	p.u8(1) // the same kind of buffer as the message
	p.size(len(values))
	_, err := s.request(ctx, "commit", append(p, values...), false)
	return err
}

func (s *pmixStore) fence(ctx context.Context) error {
	if len(s.puts) > 0 {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	_, err := s.request(ctx, "fence", s.fenceRequest(), true)
	return err
}

func (s *pmixStore) fenceRequest() (p packer) {
	p.command(pmixFence)
	p.sizeItem(1)
	p.process(s.namespace, pmixAllRanks)
	p.sizeItem(1)
	p.item()
	p.string("pmix.collect") // what was put reaches all hosts
	p.u32(0)
	p.u16(pmixBool)
	p.u8(1)
	return p
}

func (s *pmixStore) getRequest(rank uint32, key string) (p packer) {
	p.command(pmixGet)
	p.item()
	p.string(s.namespace)
	p.item()
	p.u32(rank)
	p.sizeItem(0)
	p.item()
	p.string(key)
	return p
}

// value asks for a rank's value, and returns an unpacker at its type. Servers answer with
// all that the rank has put, or with the one value.
func (s *pmixStore) value(ctx context.Context, rank uint32, key string) (unpacker, error) {
	what := "get " + key
	u, err := s.request(ctx, what, s.getRequest(rank, key), false)
	if err != nil {
		return u, err
	}
	values := u.buffer()
	values.item() // whose values these are
	values.string()
	values.u32()
	for values.err == nil && len(values.rest) > 0 {
		values.item()
		if values.string() == key && values.err == nil {
			return values, nil
		}
		values.skipValue()
	}
	if values.err == nil {
		values.err = errors.New("the launcher's answer lacks it")
	}
	return values, fmt.Errorf("%s: %w", what, values.err)
}

func (s *pmixStore) get(ctx context.Context, key string) (string, error) {
	u, err := s.value(ctx, 0, key)
	if err != nil {
		return "", err
	}
	kind, text := u.u16(), u.string()
	if kind != pmixString || u.err != nil {
		return "", fmt.Errorf("get %s: the launcher's answer has a value of type %d, or none: want a text", key, kind)
	}
	return text, nil
}

func (s *pmixStore) jobSize(ctx context.Context) (int, error) {
	const key = "pmix.job.size"
	u, err := s.value(ctx, pmixAllRanks, key)
	if err != nil {
		return 0, err
	}
	kind, size := u.u16(), u.u32()
	if kind != pmixUint32 || u.err != nil || size == 0 || size > maxRanks {
		return 0, fmt.Errorf("get %s: the launcher's answer has the value %d of type %d: want a number from 1 to %d", key, size, kind, maxRanks)
	}
	return int(size), nil
}

func (s *pmixStore) abort(code int, reason string) error {
	var p packer
	p.command(pmixAbort)
	p.item()
	p.u32(uint32(code))
	p.item()
	p.string(reason)
	p.sizeItem(0)
	s.tag++
	return s.client.abort(pmixRequest(s.index, s.tag, p))
}

func (s *pmixStore) finalize(ctx context.Context) error {
	s.leave()
	_, err := s.request(ctx, "finalize", finalizeRequest(), false)
	return err
}

func finalizeRequest() (p packer) {
	p.command(pmixFinalize)
	p.sizeItem(0)
	return p
}
