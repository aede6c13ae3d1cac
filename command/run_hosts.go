package command

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chorale-go/chorale/launch"
)

// remoteFlags are the flags of run, bench and tune that say on which hosts the ranks run.
type remoteFlags struct {
	hosts    string
	hostFile string
	mapBy    choice
	launcher string
	agent    string
	noCopy   bool
	env      []string
}

// add adds the flags.
func (r *remoteFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	r.mapBy = choice{"slot", []string{"slot", "host"}}
	flags.StringVar(&r.hosts, "hosts", "", "the hosts of the ranks and their slots, as in a,user@b:4,[::1]:2")
	flags.StringVar(&r.hostFile, "hostfile", "", "a file of hosts, one on each line, as in a, b:4 or c slots=4")
	flags.Var(&r.mapBy, "map-by", "fill the slots of each host, or place ranks on the hosts by turns")
	flags.StringVar(&r.launcher, "launcher", "", "a command that runs another one on {host}, instead of ssh")
	flags.StringVar(&r.agent, "agent", "", "the path of chorale on the hosts (default: as here)")
	flags.BoolVar(&r.noCopy, "no-copy", false, "every host has PROGRAM at the same path")
	flags.StringArrayVar(&r.env, "env", nil, "a variable that the ranks on other hosts get; may be repeated")
}

// parse returns the hosts of a job, or nil if they are not named.
func (r *remoteFlags) parse() (_ *launch.Remote, err error) {
	remote := &launch.Remote{
		Rounds: r.mapBy.value == "host", Launcher: strings.Fields(r.launcher), SSH: strings.Fields(os.Getenv("CHORALE_SSH")),
		Agent: r.agent, AgentArgs: []string{"agent"}, NoCopy: r.noCopy, Env: r.env,
	}
	switch {
	case r.hosts != "" && r.hostFile != "":
		return nil, callErrorf("both --hosts and --hostfile: want one of them")
	case r.hosts != "":
		remote.Hosts, err = launch.ParseHosts(r.hosts)
	case r.hostFile != "":
		remote.Hosts, err = readHostFile(r.hostFile)
	case r.launcher != "" || r.agent != "" || r.noCopy || len(r.env) > 0 || remote.Rounds:
		return nil, callErrorf("--launcher, --agent, --no-copy, --env and --map-by are for other hosts: want --hosts or --hostfile, too")
	default:
		return nil, nil
	}
	return remote, err
}

func readHostFile(name string) ([]launch.Host, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, callErrorf("--hostfile: %w", err)
	}
	defer file.Close()
	return launch.ReadHosts(file, name)
}
