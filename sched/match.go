package sched

import (
	"iter"
	"slices"
)

// Match pairs messages with the receives that take them: the k-th receive of a
// rank from a peer takes the k-th message that the peer sends to the rank.
//
// The messages are listed by sender, and those of one sender in the order of
// its program; the receives are listed by receiver likewise. The functions
// return the two ends of a message or receive, which are ranks below ranks.
//
// A pair is an index into messages and an index into recvs. Pairs come by
// receiver, then by sender, then in the order of the program. A message that no
// receive takes is paired with -1, and so is a receive that no message meets.
//
// Match takes time linear in the messages and receives, but for a sort of each
// rank's receives by sender, and four bytes of memory per message.
func Match[M, R any](ranks int, messages []M, sent func(*M) (from, to int32), recvs []R, awaited func(*R) (from, to int32)) iter.Seq2[int, int] {
	return func(yield func(message, recv int) bool) {
		inboxes, ends := byReceiver(ranks, messages, sent)
		var keys []uint64 // the receives of one rank: the sender, and below it the index
		begin, recv := int32(0), 0
		for rank, end := range ends {
			inbox := inboxes[begin:end]
			begin = end
			keys = keys[:0]
			for ; recv < len(recvs); recv++ {
				from, to := awaited(&recvs[recv])
				if int(to) != rank {
					break
				}
				keys = append(keys, uint64(from)<<32|uint64(recv))
			}
			slices.Sort(keys)
			if !merge(messages, sent, inbox, keys, yield) {
				return
			}
		}
	}
}

// byReceiver lists the indices of messages by receiver and, of one receiver, in
// their order. The list of a rank ends at ends[rank], where the next one begins.
func byReceiver[M any](ranks int, messages []M, sent func(*M) (from, to int32)) (list, ends []int32) {
	ends = make([]int32, ranks+1)
	for i := range messages {
		_, to := sent(&messages[i])
		ends[to+1]++
	}
	for r := range ranks {
		ends[r+1] += ends[r]
	}
	// The beginnings advance to ends as the list fills.
	list = make([]int32, len(messages))
	for i := range messages {
		_, to := sent(&messages[i])
		list[ends[to]] = int32(i)
		ends[to]++
	}
	return list, ends[:ranks]
}

// merge pairs the messages to one rank with the keys of its receives, both
// ordered by sender. It reports whether the caller wants more pairs.
func merge[M any](messages []M, sent func(*M) (from, to int32), inbox []int32, keys []uint64, yield func(message, recv int) bool) bool {
	for len(inbox) > 0 || len(keys) > 0 {
		message, recv := -1, -1
		var sender, wanted int32
		if len(inbox) > 0 {
			message = int(inbox[0])
			sender, _ = sent(&messages[message])
		}
		if len(keys) > 0 {
			recv = int(uint32(keys[0]))
			wanted = int32(keys[0] >> 32)
		}
		switch {
		case message < 0 || recv < 0:
		case sender < wanted:
			recv = -1
		case wanted < sender:
			message = -1
		}
		if message >= 0 {
			inbox = inbox[1:]
		}
		if recv >= 0 {
			keys = keys[1:]
		}
		if !yield(message, recv) {
			return false
		}
	}
	return true
}
