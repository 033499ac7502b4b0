package heedtest

import (
	"container/list"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/heedhttp/heed/limiter"
)

// DefaultMaxClients is how many clients a Server tells apart when nothing
// else is said.
const DefaultMaxClients = 100_000

// DefaultGrace is the Server.Grace of the zero value.
const DefaultGrace = 50 * time.Millisecond

// Server is a fake rate-limited API. The zero value answers 200 to everything
// and is ready to use; there is nothing to close. The fields are not changed
// after first use, and a Server is not copied. Safe for concurrent use, as
// long as the functions given to it are; none is called under a lock that a
// request needs, except a Core, whose calls come one at a time.
type Server struct {
	// Limit makes the limiter of one client. A Core given to two clients
	// would be one limiter for both. nil: nothing is limited.
	Limit func() limiter.Core
	// Key says who is counted together. nil: the Authorization header, so
	// that one credential is one client, and no credential another. Only a
	// hash of the key is kept.
	Key func(*http.Request) string
	// Cost is what a request spends, in units. nil: 1. What is negative or no
	// number counts as 0.
	Cost func(*http.Request) float64
	// Dialect is how limits are told. Zero: not at all.
	Dialect Dialect
	// Handler answers accepted requests. The fields of the dialect and Date
	// are already set when it is called. nil: 200 with a short JSON body.
	Handler http.Handler

	// Latency is the time of each way, to the server and back. A request is
	// decided when it arrives: Latency after it was sent. One whose client
	// gives up on the way arrives and spends all the same, as it would on a
	// wire. 0 or less: none.
	Latency time.Duration
	// Jitter is the upper bound of a random time added to each way, so that
	// requests and answers overtake each other. 0 or less: none.
	Jitter time.Duration
	// Skew is the server's clock minus the real one. It is seen in Date and in
	// absolute resets, and fixed windows begin by the server's clock.
	Skew time.Duration
	// Rand gives the jitter, in [0, 1). Calls come one at a time, so that a
	// seeded rand.Rand will do. nil: math/rand/v2.
	Rand func() float64
	// MaxConcurrent is how many requests are served at once, all clients
	// together; one that arrives beyond gets a 429 and spends nothing. A
	// request is being served from its arrival until its handler returns. 0
	// or less: no such limit.
	MaxConcurrent int
	// Queue makes a limiter that can (a limiter.LeakyBucket) hold what it
	// accepts until its turn, so that requests are let through at its constant
	// rate, as nginx's limit_req does without nodelay. Those that are held
	// count as being served. false: what is accepted is answered at once.
	Queue bool

	// MaxEvents bounds Report.Events. 0: DefaultMaxEvents; negative: none are
	// kept.
	MaxEvents int
	// MaxClients bounds the clients remembered; beyond, the one that was
	// silent the longest is forgotten, with its limiter. 0 or less:
	// DefaultMaxClients.
	MaxClients int
	// Grace is how late a request may arrive on a socket after a telling was
	// written and still count as sent before it could be read. It is not
	// needed, and not used, where the server knows: through RoundTrip and
	// Respond, and on the HTTP/1 connection that carried the telling. 0:
	// DefaultGrace, but none through Network; negative: none.
	Grace time.Duration

	mu      sync.Mutex
	clients map[clientKey]*list.Element // of *client
	recent  list.List                   // most recently seen first
	record  recorder
	serving int

	randMu sync.Mutex
}

// client is what the server keeps of one key. The server's lock guards it.
type client struct {
	key   clientKey
	core  limiter.Core // nil: not limited
	waits waits
	count ClientCount
}

// visit is one request on its way through the server.
type visit struct {
	s      *Server
	client *client
	event  Event
	conn   string

	seq     uint64
	decided time.Time
	notice  notice
	held    time.Duration // by a queue, before the handler
}

// departure looks at a request at the instant of its sending: who sends it,
// what it costs, and whether it breaks a wait. conn is the connection that it
// came on, if that says anything.
func (s *Server) departure(r *http.Request, grace time.Duration, conn string) *visit {
	key, cost := r.Header.Get("Authorization"), 1.0
	if s.Key != nil {
		key = s.Key(r)
	}
	if s.Cost != nil {
		if cost = s.Cost(r); math.IsNaN(cost) || cost < 0 {
			cost = 0
		}
	}
	c := s.client(key)
	v := &visit{s: s, client: c, conn: conn, event: Event{
		Client: c.count.Client, Method: clip(r.Method, 32), Path: clip(r.URL.Path, 256), Cost: cost,
	}}
	s.mu.Lock()
	defer s.mu.Unlock()
	v.event.Sent = time.Now()
	v.event.Violation = c.waits.broken(v.event.Sent, grace, conn)
	return v
}

// arrival decides, at the instant at which the request reaches the server.
// Every accepted request is being served until leave.
func (v *visit) arrival() {
	s := v.s
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now() // under the lock, so that the instants of one limiter never go back
	v.decided = now
	server := now.Add(s.Skew)
	r := ruling{crowded: s.MaxConcurrent > 0 && s.serving >= s.MaxConcurrent}
	if core := v.client.core; core != nil {
		r.limited, r.window = true, windowOf(core)
		if r.crowded {
			r.result = core.Peek(server, v.event.Cost)
		} else {
			r.result, v.held = s.take(core, server, v.event.Cost)
		}
	}
	v.notice = s.Dialect.put(r, server)
	v.event.At, v.event.Told = now, v.notice.told()
	v.event.Status, v.event.Rejected = v.notice.status, !r.accepted()
	v.seq = s.record.add(v.event, s.maxEvents(), r.crowded)
	count := &v.client.count
	if v.event.Rejected {
		count.Rejected++
	} else {
		count.Accepted++
		s.serving++
		s.record.sum.Peak = max(s.record.sum.Peak, s.serving)
	}
	if v.event.Violation {
		count.Violations++
	}
}

// queue is what a limiter that holds requests has.
type queue interface {
	Delay(now time.Time, cost float64) (time.Duration, bool)
}

// take spends. Delay gives no Result; Peek, in the same instant, gives the one
// that Take would.
func (s *Server) take(core limiter.Core, now time.Time, cost float64) (limiter.Result, time.Duration) {
	q, ok := core.(queue)
	if !s.Queue || !ok {
		return core.Take(now, cost), 0
	}
	r := core.Peek(now, cost)
	d, ok := q.Delay(now, cost)
	if !ok {
		r.Allowed, d = false, 0
	}
	return r, d
}

// leave ends the serving of an accepted request, whose handler has answered
// with status (0: with nothing).
func (v *visit) leave(status int) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.s.serving--
	v.s.record.answered(v.seq, status)
}

// abandon ends the serving of a request, if it was accepted, whose client has
// gone.
func (v *visit) abandon() {
	if !v.event.Rejected {
		v.leave(0)
	}
}

// delivery notes that the answer has reached the client.
func (v *visit) delivery() {
	if n := v.notice; n.hold <= 0 && !n.shows {
		return
	}
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.client.waits.tell(v.seq, v.decided, time.Now(), v.notice, v.conn)
}

// head puts what the server says of the limits, and its clock, into h.
func (v *visit) head(h http.Header) {
	h.Set("Date", v.decided.Add(v.s.Skew).UTC().Format(http.TimeFormat))
	for _, f := range v.notice.fields {
		h.Set(f.name, f.value)
	}
}

// Report is a copy of what the server has seen so far.
func (s *Server) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := make([]ClientCount, 0, s.recent.Len())
	for e := s.recent.Front(); e != nil; e = e.Next() {
		counts = append(counts, e.Value.(*client).count)
	}
	return s.record.report(counts)
}

// way is the time of one way.
func (s *Server) way() time.Duration {
	d := max(s.Latency, 0)
	if s.Jitter <= 0 {
		return d
	}
	if s.Rand == nil {
		return d + time.Duration(rand.Float64()*float64(s.Jitter))
	}
	s.randMu.Lock()
	defer s.randMu.Unlock()
	return d + time.Duration(s.Rand()*float64(s.Jitter))
}

func (s *Server) maxEvents() int {
	if s.MaxEvents == 0 {
		return DefaultMaxEvents
	}
	return s.MaxEvents
}

func (s *Server) grace() time.Duration {
	if s.Grace == 0 {
		return DefaultGrace
	}
	return max(s.Grace, 0)
}
