package join

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
)

const (
	maxPMILine    = 8 << 10 // bytes of an answer
	maxPMIRequest = 999     // bytes of a request; Slurm reads up to 1024 at once
	maxPMIValue   = 900     // bytes of a value, whatever the server says
	maxKVSName    = 256     // bytes of the store's name
)

// A pmiStore is the key store of a PMI-1 server.
//
// A request is a line of KEY=VALUE words, and so is its answer. Servers differ in the
// order of the words, and in how they treat what they do not know: Hydra ends the job,
// and Slurm does not answer. Only requests that all of them know are sent.
type pmiStore struct {
	*client[string]
	kvs   string // the store's name
	limit int    // bytes of a value
}

// connectPMI opens the session. Initack is the request with which a rank starts that
// learns its place from the server; "" without it.
func connectPMI(ctx context.Context, p *Place, conn net.Conn, initack string) (_ store, err error) {
	s := &pmiStore{client: newClient(conn, maxPMILine, readPMILine)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if initack != "" {
		if p.Rank, p.Size, err = s.initack(ctx, initack); err != nil {
			return nil, err
		}
	}
	words, err := s.request(ctx, "init", "pmi_version=1 pmi_subversion=1", "response_to_init")
	if err != nil {
		return nil, err
	}
	if v := words["pmi_version"]; v != "1" {
		return nil, fmt.Errorf("the launcher speaks version %.20q of PMI: want 1", v)
	}
	maxes, err := s.request(ctx, "get_maxes", "", "maxes")
	if err != nil {
		return nil, err
	}
	if words, err = s.request(ctx, "get_my_kvsname", "", "my_kvsname"); err != nil {
		return nil, err
	}
	s.kvs = words["kvsname"]
	if s.kvs == "" || len(s.kvs) > maxKVSName {
		return nil, fmt.Errorf("the name of the launcher's store has %d bytes: want 1 to %d", len(s.kvs), maxKVSName)
	}
	p.Job = s.kvs
	if s.limit, err = pmiLimit(maxes, len(s.kvs)); err != nil {
		return nil, err
	}
	return s, nil
}

// pmiLimit returns how many bytes a value may have, with a store whose name has some
// bytes.
func pmiLimit(maxes map[string]string, nameLen int) (int, error) {
	keys, err := strconv.Atoi(maxes["keylen_max"])
	if err != nil || keys < 32 {
		return 0, fmt.Errorf("the launcher's store has keylen_max=%.20q: want 32 or more", maxes["keylen_max"])
	}
	values, err := strconv.Atoi(maxes["vallen_max"])
	if err != nil || values <= minValue {
		return 0, fmt.Errorf("the launcher's store has vallen_max=%.20q: want more than %d", maxes["vallen_max"], minValue)
	}
	room := maxPMIRequest - len("cmd=put kvsname= key= value=\n") - nameLen - 32
	return min(values-1, maxPMIValue, room), nil
}

// initack asks the server for this rank's place. The answer has four lines.
func (s *pmiStore) initack(ctx context.Context, request string) (rank, size int, err error) {
	const what = "initack"
	line, err := s.ask(ctx, what, []byte(request), false)
	got := map[string]string{}
	for i := range 4 {
		if i > 0 && err == nil {
			line, err = s.answer(ctx, what, false)
		}
		if err != nil {
			return 0, 0, err
		}
		words, err := parsePMI(line)
		if err != nil {
			return 0, 0, fmt.Errorf("%s: %w", what, err)
		}
		if cmd := words["cmd"]; cmd != what && cmd != "set" || failed(words) {
			return 0, 0, fmt.Errorf("%s: the launcher answers cmd=%.80q with rc=%.20q: want cmd=initack and cmd=set", what, cmd, words["rc"])
		}
		maps.Copy(got, words)
	}
	rank, rankErr := strconv.Atoi(got["rank"])
	size, sizeErr := strconv.Atoi(got["size"])
	if rankErr != nil || sizeErr != nil {
		return 0, 0, fmt.Errorf("%s: the launcher says rank %.20q of %.20q: want numbers", what, got["rank"], got["size"])
	}
	return rank, size, nil
}

// request sends a request and returns the words of the answer, which has to be of the
// kind want and without an error.
func (s *pmiStore) request(ctx context.Context, cmd, rest, want string) (map[string]string, error) {
	words, err := s.exchange(ctx, cmd, rest, want)
	if err == nil && failed(words) {
		err = fmt.Errorf("%s: the launcher refuses: rc=%.20q msg=%.80q", cmd, words["rc"], words["msg"])
	}
	return words, err
}

func (s *pmiStore) exchange(ctx context.Context, cmd, rest, want string) (map[string]string, error) {
	line := strings.TrimSuffix("cmd="+cmd+" "+rest, " ") + "\n"
	answer, err := s.ask(ctx, cmd, []byte(line), cmd == "barrier_in")
	if err != nil {
		return nil, err
	}
	words, err := parsePMI(answer)
	if err == nil && words["cmd"] != want {
		err = fmt.Errorf("the launcher answers cmd=%.80q: want cmd=%s", words["cmd"], want)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return words, nil
}

func failed(words map[string]string) bool { return words["rc"] != "" && words["rc"] != "0" }

func (s *pmiStore) maxValue() int { return s.limit }

func (s *pmiStore) put(ctx context.Context, key, value string) error {
	_, err := s.request(ctx, "put", fmt.Sprintf("kvsname=%s key=%s value=%s", s.kvs, key, value), "put_result")
	return err
}

func (s *pmiStore) fence(ctx context.Context) error {
	_, err := s.request(ctx, "barrier_in", "", "barrier_out")
	return err
}

func (s *pmiStore) get(ctx context.Context, key string) (string, error) {
	words, err := s.exchange(ctx, "get", fmt.Sprintf("kvsname=%s key=%s", s.kvs, key), "get_result")
	if err != nil {
		return "", err
	}
	if failed(words) { // there may be a value all the same
		return "", fmt.Errorf("get: the launcher has no key %s: rank 0 has not put it", key)
	}
	return words["value"], nil
}

// abort is not answered: the launcher kills the process.
func (s *pmiStore) abort(code int, reason string) error {
	word := strings.Map(func(c rune) rune {
		if c <= ' ' || c > '~' || strings.ContainsRune(`=;\`, c) {
			return '_'
		}
		return c
	}, reason)
	return s.client.abort(fmt.Appendf(nil, "cmd=abort exitcode=%d message=%s\n", code, word))
}

func (s *pmiStore) finalize(ctx context.Context) error {
	s.leave() // the server closes the connection after its answer
	_, err := s.request(ctx, "finalize", "", "finalize_ack")
	return err
}

// readPMILine reads a line without its end.
func readPMILine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return "", fmt.Errorf("the launcher's answer has more than %d bytes", maxPMILine)
	case err != nil && len(line) > 0:
		return "", errors.New("the launcher has closed the connection in the middle of an answer")
	case err != nil:
		return "", err
	}
	return string(line[:len(line)-1]), nil
}

// parsePMI returns the words of a line. Errors do not quote values, which may be
// secret.
func parsePMI(line string) (map[string]string, error) {
	words := map[string]string{}
	for word := range strings.FieldsSeq(line) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			continue // a message of several words
		}
		if _, twice := words[key]; twice {
			return nil, fmt.Errorf("the launcher's answer has two values for %.80q", key)
		}
		words[key] = value
	}
	return words, nil
}
