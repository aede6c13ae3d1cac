// Package remote is the protocol between a launcher and its agent on another host, over
// the standard input and output of ssh.
//
// What a login shell prints comes first. Then the agent says [Hello], and the launcher
// answers with [Orders], one line each. If the host has no agent, [CopyScript] asks for
// a copy before. From then on, both send a [Frame] at any time: signals and input to the
// ranks, their output and their ends back.
//
// Input and outputs are streams. An [Outlet] sends no more than its window before the
// [Inlet] at the other end has taken it, so that a stream that nobody reads holds up no
// other one.
//
// The package starts no process, and knows neither jobs nor hosts: launch has the two
// ends that do.
package remote
