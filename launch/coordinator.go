package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chorale-go/chorale/internal/network"
	"github.com/chorale-go/chorale/internal/proof"
	"github.com/chorale-go/chorale/internal/stall"
	"github.com/chorale-go/chorale/launch/internal/control"
	"github.com/chorale-go/chorale/launch/join"
)

// A coordinator is a rank's part of what chorale run does for its jobs, in a job that
// another launcher has started: the connection to that launcher and, in rank 0, the
// control server. Rank 0 makes the secret and the addresses known to the other ranks.
type coordinator struct {
	session    *join.Session   // nil if the launcher has no key store
	control    *control.Server // of rank 0; nil in the others
	secretFile string          // of rank 0, if the ranks of this host have the secret from it
}

// An invitation is what rank 0 tells the others through the launcher's key store.
type invitation struct {
	Version int    `json:"version"`
	Control string `json:"control"`          // its addresses
	Secret  string `json:"secret,omitempty"` // absent if the user gave one
}

const invitationVersion = 1

// finalizeTimeout bounds how long a launcher may take to let a rank go.
const finalizeTimeout = 5 * time.Second

// coordinate finds out, in a job of another launcher, what chorale run tells a rank of its
// own jobs by variables.
func coordinate(ctx context.Context, env JobEnv) (JobEnv, *coordinator, error) {
	c := &coordinator{}
	err := c.begin(ctx, &env)
	if err != nil {
		c.abort(env.Rank, err)
		return env, nil, err
	}
	return env, c, nil
}

func (c *coordinator) begin(ctx context.Context, env *JobEnv) (err error) {
	place := &env.Foreign.Place
	if c.session, err = place.Connect(ctx); err != nil {
		return err
	}
	env.Rank, env.Size = place.Rank, place.Size
	if env.Size > maxRanks {
		return fmt.Errorf("%s: the job has %d ranks: want at most %d", place.Launcher, env.Size, maxRanks)
	}
	if c.session == nil {
		return c.meet(env)
	}
	return c.invite(ctx, env)
}

// invite has the launcher's key store pass rank 0's invitation to all ranks.
func (c *coordinator) invite(ctx context.Context, env *JobEnv) error {
	if env.Foreign.token != "" {
		env.Secret = proof.SecretOf(env.Foreign.token, env.Foreign.Place.Job)
	} else {
		env.Foreign.SecretSource = "rank 0, through " + env.Foreign.Place.Launcher
	}
	var mine string
	if env.Rank == 0 {
		inv := invitation{Version: invitationVersion}
		if env.Foreign.token == "" {
			env.Secret = proof.NewSecret()
			inv.Secret = env.Secret.Reveal()
		}
		if err := c.serve(env, nil); err != nil {
			return err
		}
		inv.Control = env.Control
		text, err := json.Marshal(inv)
		if err != nil {
			return err
		}
		mine = string(text)
	}
	text, err := c.session.Share(ctx, mine)
	if err != nil || env.Rank == 0 {
		return err
	}
	inv, secret, err := parseInvitation(text, env.Foreign.token != "")
	if err != nil {
		return err
	}
	env.Control = inv.Control
	if inv.Secret != "" {
		env.Secret = secret
	}
	return nil
}

// parseInvitation parses what rank 0 has published, and the secret in it. No error quotes
// the text. Where this rank has a token, there is no secret in it: whoever can change what
// is in the key store does not make a rank do without its token.
func parseInvitation(text string, token bool) (inv invitation, secret proof.Secret, err error) {
	switch err := json.Unmarshal([]byte(text), &inv); {
	case err != nil:
		return inv, secret, errors.New("what rank 0 has published is no invitation of chorale")
	case inv.Version != invitationVersion:
		return inv, secret, fmt.Errorf("rank 0 speaks version %d of the invitation, this rank version %d: want the same program in all ranks", inv.Version, invitationVersion)
	case (inv.Secret == "") != token:
		return inv, secret, fmt.Errorf("only one of rank 0 and this rank has %s: want it in all ranks or in none", envToken)
	}
	if inv.Secret != "" {
		secret, err = proof.ParseSecret(inv.Secret)
	}
	return inv, secret, err
}

// meet has the ranks meet at an address that all of them know.
func (c *coordinator) meet(env *JobEnv) (err error) {
	at := env.Foreign.Place.Rendezvous
	switch {
	case env.Foreign.token != "":
		env.Secret = proof.SecretOf(env.Foreign.token, env.Foreign.Place.Job)
	case !env.leavesHost():
		env.Secret, c.secretFile, err = localSecret(env.Foreign.Place.Job + " " + strings.Join(meetingPlaces(at), ","))
		if err != nil {
			return fmt.Errorf("%w; set %s to the same text in all ranks", err, envToken)
		}
		env.Foreign.SecretSource = "the file " + c.secretFile
	case env.Foreign.insecure:
		env.Secret, env.Foreign.SecretSource = proof.SecretOf(envInsecure, env.Foreign.Place.Job), "none: "+envInsecure+"=1"
	default:
		return fmt.Errorf("the ranks of this job have no secret: set %s or %s to the same text or file in all of them, as in openssl rand -hex 32; %s=1 does without one, and lets in whoever reaches this network", envToken, envTokenFile, envInsecure)
	}
	if env.Rank == 0 {
		return c.serve(env, at)
	}
	return nil
}

// serve begins rank 0's control server: at the ports of a rendezvous, or at any port.
func (c *coordinator) serve(env *JobEnv, at *join.Rendezvous) (err error) {
	var listener net.Listener
	if at == nil {
		listener, env.Control, err = listenAll(netip.Addr{})
	} else {
		listener, err = listenAtFirst(at, env.leavesHost())
	}
	if err != nil {
		return err
	}
	if at != nil { // rank 0 may not find itself at its name
		env.Control = listener.Addr().String()
		if env.leavesHost() {
			env.Control = network.Join([]netip.Addr{loopback}, network.Port(listener))
		}
	}
	c.control, err = control.NewServer(control.Config{
		Size: env.Size, Secret: env.Secret, Listener: listener, Addresses: env.Control, Encrypted: env.leavesHost(),
		Shared: env.Transport == "shm" && !env.Mixed, Stall: env.Stall, Host: hostName(), OfRanks: true,
		Hooks: control.Hooks{
			Report:     func(string, ...any) {}, // of -v
			Failed:     func(err error) { fmt.Fprintf(os.Stderr, "chorale: rank 0: %v\n", err) },
			Waiting:    func(text string) { fmt.Fprintln(os.Stderr, "chorale: "+text) },
			Unselected: func(why string) { fmt.Fprintln(os.Stderr, unselected(why)) },
			Dropped:    func(int, bool) {}, // the control itself takes the rank for lost
			Stalled:    func(r *stall.Report) { fmt.Fprintln(os.Stderr, linePrefix+r.Text()) },
		},
	})
	return err
}

// meetingPlaces returns the addresses at which rank 0 may listen, the likeliest first.
func meetingPlaces(at *join.Rendezvous) (addresses []string) {
	for _, host := range at.Hosts {
		for _, port := range at.Ports {
			addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(port)))
		}
	}
	return addresses
}

// listenAtFirst listens at the first free port of a rendezvous: for other hosts, or at the
// loopback address that it names.
func listenAtFirst(at *join.Rendezvous, others bool) (net.Listener, error) {
	host := ""
	if !others {
		host = loopback.String()
		if a, err := netip.ParseAddr(at.Hosts[0]); err == nil {
			host = a.String()
		}
	}
	var failed []error
	for _, port := range at.Ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("rank 0 cannot listen where the other ranks look for it: %w", errors.Join(failed...))
}

// abort has the launcher end the job, since this rank cannot join it. The launcher may
// kill this process too, so the error is printed first.
func (c *coordinator) abort(rank int, err error) {
	if c.control != nil {
		c.control.Close()
	}
	c.removeSecret()
	if c.session != nil {
		fmt.Fprintf(os.Stderr, "chorale: rank %d: %v\n", rank, err)
		_ = c.session.Abort(1, "a rank cannot join the job") // the process ends in any case
	}
}

// leave ends this rank's part. In rank 0, it first waits until the other ranks have left;
// if rank 0 has given up, no longer than they take to notice.
func (c *coordinator) leave(gaveUp <-chan struct{}) {
	if c.control != nil {
		c.control.WaitForAll(gaveUp)
		c.control.Close()
	}
	if c.session != nil {
		ctx, cancel := context.WithTimeout(context.Background(), finalizeTimeout)
		defer cancel()
		_ = c.session.Finalize(ctx) // a launcher that is gone ends nothing
	}
}

// removeSecret removes the file with the secret when rank 0 has joined, and with it all
// ranks, so that no file outlives a rank 0 that is killed; or when rank 0 cannot join.
func (c *coordinator) removeSecret() {
	if c.secretFile != "" && c.control != nil {
		os.Remove(c.secretFile)
	}
}
