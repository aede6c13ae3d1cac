// Package sim simulates schedules on a network: how long they take, and why.
//
// [Run] places schedules on a topology and lets virtual time pass. It is a
// discrete-event simulation that reads no clock and starts no goroutine, so the
// same call always gives the same [Result]. The rules are these:
//
//   - A rank begins a step when its own previous step is done. With Config.Sync
//     all ranks whose steps are done begin their next ones together, when
//     nothing else is left to happen; a step of copies alone waits like any
//     other.
//   - A message is ready when both its ends have begun the steps that send and
//     receive it. With single ports it then queues for its sender's send port
//     and its receiver's receive port. When it holds both, it queues for every
//     link of its route, in its direction; when it is at the head of all these
//     queues, it starts. It holds its ports and links until it has arrived.
//     Queues are first come, first served. Of messages that come at the same
//     time, the one that is first in the list of its sender's step goes first,
//     and of equals the one of the lower rank. A message that takes no time
//     waits for nothing.
//   - A message of m words over h links takes Ts + h·Th + m·Tw; by store and
//     forward, Ts + h·(Th + m·Tw). Between the hosts of a [topo.Hosts], these may be
//     others: Config.Between.
//   - When a rank's messages of a step are done, the rank combines what has
//     arrived, for m·Top each. What its copies combine comes before the step's
//     messages. Copies that replace take no time.
//   - Times that differ by rounding alone are the same time.
//
// With Config.Machine the time of a message, of combining, copying and of a step is what the
// [Machine] says, messages are work of processors, and ranks may share these.
//
// With Config.Share a time can be ill-conditioned: messages that come together
// share a link from end to end, and if one is the least bit earlier, all that
// follows is different. docs/simulator.md has an example.
//
// The model is that of Grama, Gupta, Karypis and Kumar, Introduction to
// Parallel Computing (2nd ed.), 2.5 and 4.
//
// Inside, the programs of all ranks become one flat table. The contention-free
// engine lets ranks advance in rounds, in order of ranks, so that memory is read
// in order. It matches each message with its receive when both its ends have begun
// their steps, gives it its step of the timeline, and times it as if none
// waited. Only if a link or port is then requested before it is free, the
// queueing engine simulates the events one by one; the messages that share
// bandwidth are its transfers. A message that queues for links knows then which
// messages it waits for. Where messages are work of the processors of a [Machine], a third
// engine simulates these. From the times of any of them follow the critical path and the
// log.
package sim
