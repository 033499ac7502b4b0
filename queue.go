package heed

// waiter is one call in a queue. Its own goroutine waits; nothing else runs for it.
type waiter struct {
	seq     uint64
	signal  chan struct{} // holds one: look again
	refused *verdict      // set when somebody else found that it cannot make it
	bound   int64         // monotonic instant after which it may not go; 0: none
	late    bool          // the bound is the caller's deadline

	notBefore int64 // monotonic instant before which a Budget wants no question
	denied    Limit // the limit under which it denied the last one

	prev, next *waiter
}

// queue is a list of waiters in order of arrival, kept also by retries, which
// come back to the place that they had. Not safe for concurrent use.
type queue struct {
	head, tail *waiter
	n          int
}

// insert puts w behind everybody who arrived before it.
func (q *queue) insert(w *waiter) (ahead int) {
	q.n++
	if q.tail == nil {
		q.head, q.tail = w, w
		return 0
	}
	if q.tail.seq < w.seq {
		w.prev, q.tail.next, q.tail = q.tail, w, w
		return q.n - 1
	}
	after := q.head
	for after.seq < w.seq {
		after = after.next
		ahead++
	}
	w.prev, w.next = after.prev, after
	after.prev = w
	if w.prev != nil {
		w.prev.next = w
	} else {
		q.head = w
	}
	return ahead
}

// remove takes w out and lets the next in line look, so that a cancel leaves no hole.
func (q *queue) remove(w *waiter) {
	first := q.head == w
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.head = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	w.prev, w.next = nil, nil
	q.n--
	if first {
		q.wake()
	}
}

// wake lets the first in line look again.
func (q *queue) wake() {
	if q.head != nil {
		q.head.poke()
	}
}

func (w *waiter) poke() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// dismiss refuses everybody whose bound lies before until: they cannot make it, and are told at once.
func (q *queue) dismiss(until int64, v verdict) {
	for w := q.head; w != nil; w = w.next {
		if w.bound != 0 && w.bound < until && w.refused == nil {
			w.refused = &v
			w.poke()
		}
	}
}
