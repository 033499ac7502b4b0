package heed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Budget is the ledger behind a [Throttle]: it grants and settles costs under
// known limits and takes the server's word. Give one Budget to several
// Transports and they share it. A Budget must be safe for concurrent use, is
// never called under a lock, and may do I/O within ctx.
//
// Scopes tell credentials apart by a hash of the secret; whoever stores them
// outside the process must put them through a keyed hash first.
type Budget interface {
	// Take asks for c under limits and under all that the scope's answers have
	// taught, all or none. The Grant says yes, or how long to wait before asking
	// again. An error means that the Budget could not decide: then nothing is sent.
	Take(ctx context.Context, scope string, limits []Limit, c Cost) (Grant, error)
	// Settle ends what Take granted, once. Less than was taken gives the rest
	// back; the zero Cost says that nothing was ever sent.
	Settle(ctx context.Context, g Grant, used Cost) error
	// Learn takes what an answer said: what remains, when it resets, and holds.
	// It comes after the Settle of the same send.
	Learn(ctx context.Context, scope string, fb Feedback) error
}

// Grant is a Budget's answer.
type Grant struct {
	// OK: it may be sent now, and is paid.
	OK bool
	// Wait is how long to wait before asking again when not OK: a span, since the ledger's clock is not ours.
	Wait time.Duration
	// Binding is the index of the limit that made it wait. Negative: none of those given, but what answers taught.
	Binding int
	// ID names the grant for Settle.
	ID uint64
}

// NewBudget makes a Budget in memory: one ledger for all Transports of a
// process that are given it. It is safe for concurrent use, keeps at most
// 10,000 scopes, idle ones leaving first, and needs no closing.
func NewBudget() Budget {
	return &memoryBudget{line: newTimeline(), scopes: make(map[string]*ledger), grants: make(map[uint64]taken)}
}

type memoryBudget struct {
	line timeline

	mu     sync.Mutex
	scopes map[string]*ledger
	grants map[uint64]taken
	last   uint64
}

// taken is a grant that is not settled yet.
type taken struct {
	ledger *ledger
	limits []Limit
	cost   Cost
}

// again is how soon to ask again when only somebody else's answer will tell.
const again = 20 * time.Millisecond

func (b *memoryBudget) Take(ctx context.Context, scope string, limits []Limit, c Cost) (Grant, error) {
	if err := context.Cause(ctx); err != nil {
		return Grant{}, err
	}
	now := b.line.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.scope(scope, now)
	v := l.decide(now, limits, c, 0)
	switch {
	case v.impossible:
		return Grant{}, &LimitError{Scope: scope, Reason: ReasonImpossible, Limit: v.limit}
	case v.wait == never:
		return Grant{Wait: again, Binding: -1}, nil
	case v.wait > 0:
		g := Grant{Wait: v.wait, Binding: -1}
		for i := range limits {
			if v.reason == ReasonRule && limits[i] == v.limit {
				g.Binding = i
			}
		}
		return g, nil
	}
	l.spend(now, limits, c, false)
	b.last++
	b.grants[b.last] = taken{l, limits, c}
	return Grant{OK: true, Binding: -1, ID: b.last}, nil
}

func (b *memoryBudget) Settle(_ context.Context, g Grant, used Cost) error {
	now := b.line.now()
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.grants[g.ID]
	if !ok {
		return nil // settled already
	}
	delete(b.grants, g.ID)
	t.ledger.settle(now, t.limits, t.cost, used)
	return nil
}

func (b *memoryBudget) Learn(_ context.Context, scope string, fb Feedback) error {
	at := time.Now()
	now := b.line.at(at)
	sent := now
	if !fb.Sent.IsZero() {
		// As a span: Sent may carry no monotonic reading, and the wall clock may have been set since this Budget was made.
		ago := int64(max(0, at.Sub(fb.Sent)))
		sent = instant{now.wall - ago, now.mono - ago}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scope(scope, now).learn(sent, now, &fb, rand.Float64())
	return nil
}

// scope finds or makes a scope's ledger. Room is made by forgetting ledgers
// that owe nothing; while there are none, one that owes the least of a few.
func (b *memoryBudget) scope(name string, now instant) *ledger {
	if l, ok := b.scopes[name]; ok {
		return l
	}
	for range 2 { // two, so that a crowd that could not be forgotten is worn down afterwards
		if len(b.scopes) >= maxScopes {
			b.forget(now)
		}
	}
	l := new(ledger)
	b.scopes[name] = l
	return l
}

func (b *memoryBudget) forget(now instant) {
	const few = 64
	var least string
	var owes int64
	n := 0
	for name, l := range b.scopes {
		if l.flights > 0 {
			continue
		}
		debt := l.debt(now)
		if l.idle(now) {
			delete(b.scopes, name)
			return
		}
		if least == "" || debt < owes {
			least, owes = name, debt
		}
		if n++; n == few {
			break
		}
	}
	if least != "" {
		delete(b.scopes, least)
	}
}
