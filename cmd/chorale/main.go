// Command chorale runs programs of many ranks, and shows, checks, simulates, draws
// and measures the schedules of their collectives. chorale help lists the verbs, which
// are in package command.
package main

import "github.com/chorale-go/chorale/command"

func main() { command.Main() }
