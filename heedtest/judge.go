package heedtest

import "time"

// span is the open interval between the instant at which a client was told to
// wait and the end of that wait. Both edges are outside: what is sent in the
// very instant of the telling was under way, and at the end one may send.
type span struct{ from, until time.Time }

// broken says whether what was sent at the instant sent, or up to grace
// before it, was certainly sent inside.
func (s span) broken(sent time.Time, grace time.Duration) bool {
	return sent.Add(-grace).After(s.from) && sent.Before(s.until)
}

// begin is where a wait told at the instant t begins, when it may go on from
// an earlier one that it replaces.
func (s span) begin(t time.Time) time.Time {
	if t.Before(s.until) && s.from.Before(t) {
		return s.from
	}
	return t
}

// waits is what one client has been told. It is a plain value with no clock.
type waits struct {
	hold  span   // by Retry-After: stands until it ends
	drain span   // by a reset after nothing remaining: stands until newer numbers
	read  uint64 // the newest decision whose numbers the client has seen
	conn  string // the connection of the newest telling; "" when not known
}

// tell notes that the answer of decision number seq, made at the instant
// decided, has reached the client at the instant delivered.
func (w *waits) tell(seq uint64, decided, delivered time.Time, n notice, conn string) {
	if n.hold > 0 {
		until := decided.Add(n.hold)
		if delivered.Before(w.hold.until) && until.Before(w.hold.until) {
			until = w.hold.until
		}
		from := w.hold.begin(delivered)
		if drain := w.drain.begin(delivered); drain.Before(from) {
			from = drain // the refusal of what came inside that wait
		}
		w.hold = span{from, until}
		w.conn = conn
	}
	if !n.shows || seq < w.read {
		return
	}
	w.read = seq
	if n.reset <= 0 {
		w.drain = span{}
		return
	}
	w.drain = span{w.drain.begin(delivered), decided.Add(n.reset)}
	w.conn = conn
}

// broken says whether a request breaks a told wait. It was sent at the
// instant sent or up to grace before; but on the connection that brought the
// telling nothing can have crossed it.
func (w *waits) broken(sent time.Time, grace time.Duration, conn string) bool {
	if conn != "" && conn == w.conn {
		grace = 0
	}
	return w.hold.broken(sent, grace) || w.drain.broken(sent, grace)
}
