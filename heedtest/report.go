package heedtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// DefaultMaxEvents is how many events a Server keeps when nothing else is
// said.
const DefaultMaxEvents = 100_000

// An Event is one request as the server saw it. No part of it holds a
// credential or a query.
type Event struct {
	Sent      time.Time     // when the client sent it; on sockets the same as At less the simulated latency
	At        time.Time     // when it arrived and was decided, on the real clock (Skew is not in it)
	Client    string        // a short hash of the key; "anonymous" when the key was empty
	Method    string        // at most 32 bytes
	Path      string        // without the query; at most 256 bytes
	Cost      float64       // in units
	Status    int           // what was answered; 0 while a handler has answered nothing, or when the client had gone
	Rejected  bool          // refused by the limiter or by MaxConcurrent
	Told      time.Duration // the wait told with the answer, from At on; 0: none
	Violation bool          // sent inside a wait told before
}

// ClientCount is what one client did.
type ClientCount struct {
	Client                         string // as in Event
	Accepted, Rejected, Violations int
}

// A Report is what a Server has seen so far. It is a copy: the server goes on
// without it. The zero value is the report of a server that nobody called.
type Report struct {
	Accepted, Rejected int

	// Violations counts requests sent inside a wait that the server had told
	// this client before: a Retry-After, or a reset after nothing remaining.
	// It begins after the instant at which the telling reached the client
	// and ends before the end that the header named, rounding included. A
	// newer answer that shows units remaining takes a reset back, but not a
	// Retry-After. Through RoundTrip and Respond this is exact, and through
	// Network in a bubble; on sockets see Server.Grace.
	Violations int
	// Forgiven counts those of the violations that the limiter accepted all
	// the same: a token bucket has a token again long before it is full.
	Forgiven int
	// Crowded counts those of the rejected that met MaxConcurrent.
	Crowded int
	// Peak is the largest number of requests served at once.
	Peak int

	Clients []ClientCount // busiest first
	Events  []Event       // in order of arrival; the newest Server.MaxEvents
	Dropped int           // events that had to make room
}

// RejectedAfter counts the kept events after the instant t that were
// rejected: a client that learns has few after its first minute.
func (r Report) RejectedAfter(t time.Time) int {
	n := 0
	for _, e := range r.Events {
		if e.Rejected && e.At.After(t) {
			n++
		}
	}
	return n
}

// reportClients bounds the table of String.
const reportClients = 10

// String is a short table: a line for each of the ten busiest clients, one
// for the others, and a sum.
func (r Report) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "client\taccepted\trejected\tviolations\t")
	row := func(c ClientCount) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", c.Client, c.Accepted, c.Rejected, c.Violations)
	}
	busiest := r.Clients[:min(len(r.Clients), reportClients)]
	for _, c := range busiest {
		row(c)
	}
	if rest := r.Clients[len(busiest):]; len(rest) > 0 {
		others := ClientCount{Client: fmt.Sprintf("%d others", len(rest))}
		for _, c := range rest {
			others.Accepted += c.Accepted
			others.Rejected += c.Rejected
			others.Violations += c.Violations
		}
		row(others)
	}
	row(ClientCount{"all", r.Accepted, r.Rejected, r.Violations})
	_ = w.Flush() // a strings.Builder takes everything
	if r.Forgiven > 0 {
		fmt.Fprintf(&b, "%d of the violations were accepted all the same\n", r.Forgiven)
	}
	if r.Crowded > 0 {
		fmt.Fprintf(&b, "%d of the rejected were too many at once\n", r.Crowded)
	}
	if n := len(r.Events); n > 1 {
		fmt.Fprintf(&b, "over %v, at most %d at once", r.Events[n-1].At.Sub(r.Events[0].At), r.Peak)
		if r.Dropped > 0 {
			fmt.Fprintf(&b, ", %d older events dropped", r.Dropped)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// recorder counts. The caller holds the server's lock.
type recorder struct {
	sum    Report // without Clients and Events
	ring   []Event
	oldest int    // index in ring, once it is full
	seq    uint64 // how many were ever added
}

// add keeps e and gives its number, by which answered finds it.
func (rec *recorder) add(e Event, size int, crowded bool) uint64 {
	if e.Rejected {
		rec.sum.Rejected++
	} else {
		rec.sum.Accepted++
	}
	if crowded {
		rec.sum.Crowded++
	}
	if e.Violation {
		rec.sum.Violations++
		if !e.Rejected {
			rec.sum.Forgiven++
		}
	}
	rec.seq++
	switch {
	case size <= 0:
		rec.sum.Dropped++
	case len(rec.ring) < size:
		rec.ring = append(rec.ring, e)
	default:
		rec.ring[rec.oldest] = e
		rec.oldest = (rec.oldest + 1) % size
		rec.sum.Dropped++
	}
	return rec.seq
}

// answered sets the status of event number seq, if it is still kept.
func (rec *recorder) answered(seq uint64, status int) {
	age := rec.seq - seq
	if n := uint64(len(rec.ring)); age < n {
		rec.ring[(uint64(rec.oldest)+n-1-age)%n].Status = status
	}
}

func (rec *recorder) report(clients []ClientCount) Report {
	r := rec.sum
	r.Events = slices.Concat(rec.ring[rec.oldest:], rec.ring[:rec.oldest])
	slices.SortFunc(clients, func(a, b ClientCount) int {
		return cmp.Or(cmp.Compare(b.Accepted+b.Rejected, a.Accepted+a.Rejected), cmp.Compare(a.Client, b.Client))
	})
	r.Clients = clients
	return r
}
