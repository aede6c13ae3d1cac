package join

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
)

// maxNamespace bounds the name of a PMIx namespace, in bytes.
const maxNamespace = 255

// pmixFormats are the wire formats that this package speaks, with the variables in
// which a server offers them. The older "URI2" has another handshake, which makes
// some servers hang; later formats pack integers in another way, and servers that have
// one offer the older ones too.
var pmixFormats = []struct{ variable, format string }{
	{"PMIX_SERVER_URI21", "v21"},
	{"PMIX_SERVER_URI3", "v3"},
}

// pmix finds the place of a rank whose launcher runs a PMIx server: mpirun of Open MPI,
// srun --mpi=pmix, and others. The environment does not say the size.
func pmix(env *environment) *Place {
	if !env.has("PMIX_NAMESPACE", "PMIX_RANK") {
		return nil
	}
	rank := env.number("PMIX_RANK", 0, maxRanks-1, "a rank")
	env.agree("OMPI_COMM_WORLD_RANK", rank, "PMIX_RANK")
	namespace := env.get("PMIX_NAMESPACE")
	if len(namespace) > maxNamespace {
		env.fail("PMIX_NAMESPACE has %d bytes: want at most %d", len(namespace), maxNamespace)
	}
	addr, format := pmixServer(env)
	if modules := env.get("PMIX_SECURITY_MODE"); modules != "" && !slices.Contains(strings.Split(modules, ","), "native") {
		env.fail("PMIX_SECURITY_MODE=%.80q: want native among the modules, or launch by hand with %s, %s and %s", modules, envRank, envSize, envRendezvous)
	}
	if env.err != nil {
		return nil
	}
	p := &Place{
		Launcher: pmixLauncher(env, namespace), Rank: rank, Size: unknown, Job: namespace,
		Reason: env.reason("PMIX_NAMESPACE", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE"),
	}
	if env.has("OMPI_COMM_WORLD_SIZE") {
		_, p.Size = env.rankAndSize("PMIX_RANK", "OMPI_COMM_WORLD_SIZE")
	}
	p.connect = func(ctx context.Context, p *Place) (store, error) {
		conn, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return connectPMIx(ctx, p, conn, namespace, format)
	}
	return p
}

// pmixServer returns where the server listens, and the format to use.
func pmixServer(env *environment) (addr, format string) {
	for _, f := range pmixFormats {
		if !env.has(f.variable) {
			continue
		}
		addr, err := parsePMIxURI(env.get(f.variable))
		if err != nil {
			env.fail("%s=%.300q: %w", f.variable, env.get(f.variable), err)
		}
		return addr, f.format
	}
	env.fail("PMIX_NAMESPACE and PMIX_RANK are set, but neither %s nor %s is: start the program by a launcher whose PMIx is 3.2 or later, or by hand with %s, %s and %s",
		pmixFormats[0].variable, pmixFormats[1].variable, envRank, envSize, envRendezvous)
	return "", ""
}

// parsePMIxURI returns the address in a server's URI, as in
// 2134966272.0;tcp4://127.0.0.1:44917.
func parsePMIxURI(uri string) (addr string, err error) {
	want := errors.New("want SERVER;tcp4://ADDRESS:PORT or SERVER;tcp6://[ADDRESS]:PORT")
	_, rest, ok := strings.Cut(uri, ";")
	if !ok {
		return "", want
	}
	rest, _, _ = strings.Cut(rest, ";") // more may follow
	scheme, addr, ok := strings.Cut(rest, "://")
	if !ok || scheme != "tcp4" && scheme != "tcp6" {
		return "", want
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" || port == "" {
		return "", want
	}
	return addr, nil
}

// pmixLauncher names the launcher, for reports alone.
func pmixLauncher(env *environment, namespace string) string {
	switch {
	case strings.HasPrefix(namespace, "slurm.pmix."):
		return SlurmPMIx
	case env.has("OMPI_COMM_WORLD_RANK"):
		return OpenMPI
	}
	return PMIx
}
