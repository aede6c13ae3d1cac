package join

import (
	"net"
	"strconv"
)

// The variables of a launch by hand. Other launchers without a key store take the
// rendezvous from the user too.
const (
	envRank       = "CHORALE_RANK"
	envSize       = "CHORALE_SIZE"       // also the number of an Indexed Job's pods
	envRendezvous = "CHORALE_RENDEZVOUS" // where rank 0 listens, as in node7:4711 or [2001:db8::7]:4711
)

// byHand finds the place of a process whose user says everything.
func byHand(env *environment) *Place {
	if !env.has(envRank) {
		return nil
	}
	if env.require(envSize, envRank) == "" {
		return nil
	}
	p := &Place{Launcher: ByHand, Reason: env.reason(envRank, envSize, envRendezvous)}
	p.Rank, p.Size = env.rankAndSize(envRank, envSize)
	if p.Size > 1 {
		env.require(envRendezvous, envRank)
		p.Rendezvous = rendezvous(env)
		p.Job = env.get(envRendezvous)
	}
	return p
}

// rendezvous returns the rendezvous that the user names; nil if there is none.
func rendezvous(env *environment) *Rendezvous {
	if !env.has(envRendezvous) {
		return nil
	}
	host, text, err := net.SplitHostPort(env.get(envRendezvous))
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || host == "" || port == 0 {
		env.fail("%s=%.300q: want the host of rank 0 and a port, as in node7:4711", envRendezvous, env.get(envRendezvous))
		return nil
	}
	return &Rendezvous{Hosts: []string{host}, Ports: []int{int(port)}}
}
