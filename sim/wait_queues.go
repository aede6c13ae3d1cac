package sim

// waitQueues are the queues of all resources. They are first come, first served:
// at the head of a queue is the message that holds the resource. A message joins
// several queues at once, and leaves them at once when it is at the head of all.
//
// A queue names its last place only, and a place names the message behind it.
// That message learns from the one before that it is at the head.
type waitQueues struct {
	last   []int32 // per resource: the place that was taken last, or 0
	places []place // place 0 stands for none
	unused int32   // the first of the places that are not in use, or 0
	spare  int     // the number of these
}

// A place is that of one message in one queue.
type place struct {
	behind int32 // one more than the message behind it in the queue, or 0
	next   int32 // the place of the same message in its next queue, or of those not in use the next; or 0
}

func newWaitQueues(resources int) waitQueues {
	return waitQueues{last: make([]int32, resources), places: make([]place, 1)}
}

// join puts a message at the end of the queues of some resources, and its places
// behind those that it has. It returns the number of these queues of which it is
// not at the head.
func (w *waitQueues) join(message int32, first *int32, resources []int32) (behind int32) {
	w.reserve(len(resources))
	for *first != 0 {
		first = &w.places[*first].next
	}
	at := w.unused
	*first = at
	for _, r := range resources {
		p := &w.places[at]
		p.behind = 0
		if before := w.last[r]; before != 0 {
			w.places[before].behind = message + 1
			behind++
		}
		w.last[r] = at
		first, at = &p.next, p.next
	}
	*first, w.unused = 0, at
	return behind
}

// reserve makes sure that n places are not in use, and takes them.
func (w *waitQueues) reserve(n int) {
	for ; w.spare < n; w.spare++ {
		w.places = append(w.places, place{next: w.unused})
		w.unused = int32(len(w.places) - 1)
	}
	w.spare -= n
}

// free makes places unused, from a message's first one on.
func (w *waitQueues) free(first int32) {
	last := first
	for n := 1; ; n++ {
		next := w.places[last].next
		if next == 0 {
			w.spare += n
			break
		}
		last = next
	}
	w.places[last].next, w.unused = w.unused, first
}
