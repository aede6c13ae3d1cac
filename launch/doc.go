// Package launch starts the ranks of a job as processes of this machine, or of several
// hosts, and joins the job in which a process was started.
//
// [Run] is the launcher's side: it starts the ranks, forwards their output, and
// ends the job as a whole. [Join] is the rank's side. Most programs call neither:
// the command chorale run calls Run, and chorale.Main calls Join.
//
//	cfg := launch.Config{Size: 4, Program: "./examples/globalsum", Stdout: os.Stdout}
//	err := launch.Run(ctx, cfg)  // in the launcher
//	os.Exit(launch.Status(err))
//
//	ep, joined, err := launch.Join(ctx)  // in each rank
//
// # Between launcher and rank
//
// Environment variables tell a rank its size, rank and transport, and where the
// launcher listens; [Environment] reads them. Each rank then opens a control connection to
// the launcher, on which both prove that they know the job's secret (docs/security.md).
// Package control defines the messages that follow: a rank asks for the addresses of its
// peers, and the launcher announces ranks that are lost.
//
// # Several hosts
//
// With [Config.Remote], the launcher reaches each host over ssh, and starts an agent
// there: [Agent] does for the ranks of its host what Run does for those of this one. The
// secret, the program, its output and input, signals, and the ends of ranks go over that
// connection; package remote defines what is said. The control server stays with
// the launcher.
//
// # The end of a job
//
// When a rank fails, the other ranks fail too, because their operations with it
// fail. Each of them names the peer on which it failed, and the launcher follows
// these reports to the root cause, which [EndError] names.
//
// With [Config.Continue], the other ranks go on instead. [Config.Respawn] has lost ranks
// started anew, and [Regroup] gives them and the others an endpoint together.
//
// A job leaves nothing behind. Every rank leads a process group of its own, and
// a guard process outlives a launcher that is killed: it kills the groups and
// removes the files. On Linux, the guard also finds processes that have left
// their group, by a variable that they inherited; if launcher and guard are
// both killed, the kernel kills the ranks. Shared memory has no name, and ends
// with the last process that maps it. On Windows there are no process groups: a
// rank ends with its launcher, but the processes that the rank started may live
// on.
//
// # Where things live
//
// This package has the job: what is started where, how it ends, and how a rank joins. The
// packages in internal have what needs no job: control is the protocol with the ranks,
// remote that with agents, guard removes what a job leaves, output joins what the ranks
// print, and deadlock finds ranks that wait for each other. Package join knows other
// launchers.
//
// Run may be called by several goroutines at once; Join is called once per
// process.
package launch
