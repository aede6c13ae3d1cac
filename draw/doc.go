// Package draw draws simulated schedules: figures in SVG, a page that animates
// them, and traces for timeline viewers. Its writers are pure: equal scenes give
// equal bytes on every machine, and nothing is written if an error is returned,
// unless the writer itself fails.
//
// A [Scene] holds schedules and the result of their simulation by package sim,
// recorded with its log. Each entry point writes one kind of picture:
//
//   - [Network]: the topology, with messages as arrows and congested links in red
//   - [Blocks]: the contents of every rank before and after each step
//   - [SpaceTime]: the activities of ranks over time, and the critical path
//   - [Page]: an HTML page with all of this, which plays the schedule
//   - [Programs]: the programs of a schedule, which may be wrong, with faults in red
//   - [Trace]: a timeline in the Trace Event Format
//   - [Chart]: costs of several algorithms against one quantity, from [ChartData]
//
// Inside, a layout places the nodes and links of a topology; arrows and labels
// then find room among them. A replay of the schedule on symbolic values gives
// the contents of ranks. The log gives the activities of ranks and links, as bars
// on tracks. An svg writer formats numbers and escapes text for all figures.
package draw
