package heed

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
)

// Transport is an http.RoundTripper that makes a client respect remote rate
// limits. The zero value works: it learns limits from every answer, waits
// before they are hit, honours Retry-After for everybody who shares the limit,
// and retries what is safe to retry.
//
// The fields stand in chain order, outermost first; see the package
// documentation for the picture. Set them before the first use, after which
// they must not change. A Transport is safe for concurrent use, and there is
// nothing to close. It must not be copied after first use; see [Transport.Clone].
type Transport struct {
	// Cache answers what it can without asking the server. Nil: nothing is
	// cached. It is live and may be shared; see [NewCache].
	Cache *Cache
	// Retry says which failed calls are sent again. Zero: on.
	Retry Retry
	// Throttle waits before limits are hit. Zero: it learns and obeys.
	Throttle Throttle
	// Budget is the ledger behind the throttle. Nil: this Transport's own; one
	// [NewBudget] given to several Transports is shared by them.
	Budget Budget
	// Dialects read answers whose limits stand where no rule finds them, before
	// the built-in ones do. Nil: the built-in ones alone; see docs/dialects.md.
	Dialects []Dialect
	// Base sends. Nil: http.DefaultTransport.
	Base http.RoundTripper
	// Observer is told what happens. Nil: nobody is.
	Observer *Observer
	// Logger gets one line per long wait, hold, retry and final failure. Nil: silent.
	Logger *slog.Logger
	// Rand gives the randomness of all jitter, in [0, 1), and must be safe for
	// concurrent use. Nil: math/rand/v2. With one of your own a failing run can be replayed.
	Rand func() float64

	once  sync.Once
	chain *chain
	err   error
}

// layer is one step of the chain. Each owns what it passes up: exactly one of response and error.
type layer interface {
	name() string
	roundTrip(c *call, req *http.Request) (*http.Response, error)
}

// chain is a Transport in action.
type chain struct {
	layers []layer // outermost first; base is not one of them
	base   http.RoundTripper
	seq    atomic.Uint64
}

// compile builds the chain, the only place that knows its order.
func (t *Transport) compile() {
	random := source(t.Rand)
	seed := maphash.MakeSeed()
	w := &watch{observer: t.Observer, logger: t.Logger}
	if w.observer == nil {
		w.observer = new(Observer)
	}
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	rules, err := t.validate()
	if err != nil {
		t.err = err
		return
	}
	_, readsOnly := base.(*http.Transport) // it never writes to a request's header map

	learn := &learnLayer{base: base, dialects: slices.Clone(t.Dialects), looks: looksOf(t.Dialects), watch: w}
	throttle := &throttleLayer{
		next: learn, throttle: t.Throttle, rules: rules, scopes: newScopes(seed, maxScopes),
		budget: t.Budget, seed: seed, line: newTimeline(), random: random, watch: w,
	}
	retry := &retryLayer{next: throttle, retry: t.Retry, random: random, clones: !readsOnly, meter: throttle, watch: w}
	layers := []layer{retry, throttle, learn}
	if t.Cache != nil {
		layers = append([]layer{&cacheLayer{next: retry, cache: t.Cache, watch: w}}, layers...)
	}
	t.chain = &chain{layers: layers, base: base}
}

// RoundTrip sends req through the chain, as http.RoundTripper has it: req is
// not changed, its body is always closed, and exactly one of response and
// error comes back. A response's Request is never nil and tells through
// [InfoOf] what happened. Errors are [*LimitError], when a limit would have
// made it wait too long, and [*CallError]; a Transport with mistakes in its
// configuration gives the error of [Transport.Validate] each time.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.once.Do(t.compile)
	if t.err != nil {
		closeBody(req)
		return nil, t.err
	}
	if req.URL == nil {
		closeBody(req)
		return nil, &CallError{Err: errScheme}
	}
	c := begin(req, t.chain.seq.Add(1))
	defer c.above.Store(false)
	resp, err := t.chain.layers[0].roundTrip(c, req)
	if err != nil {
		return nil, err
	}
	if resp.Request == nil || resp.Request.Context() != c {
		resp.Request = req.WithContext(c)
	}
	return resp, nil
}

// Client returns an http.Client that uses t. Each call makes a new one.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// Clone returns a Transport with the same configuration and fresh state.
// Cache, Budget, Base, Observer and Logger are live and are shared.
func (t *Transport) Clone() *Transport {
	return &Transport{
		Cache: t.Cache, Retry: t.Retry, Throttle: t.Throttle, Budget: t.Budget, Dialects: t.Dialects,
		Base: t.Base, Observer: t.Observer, Logger: t.Logger, Rand: t.Rand,
	}
}

// Validate reports every mistake in the configuration at once, nil when there
// is none. The first RoundTrip gives the same error.
func (t *Transport) Validate() error {
	_, err := t.validate()
	return err
}

func (t *Transport) validate() (rules, error) {
	mistakes := t.Retry.validate()
	rules, err := t.Throttle.validate()
	if err != nil {
		mistakes = append(mistakes, err)
	}
	mistakes = append(mistakes, validateDialects(t.Dialects)...)
	if base, ok := t.Base.(*Transport); ok && base == t {
		mistakes = append(mistakes, fmt.Errorf("heed: Base is the Transport itself; give the transport that sends"))
	}
	return rules, errors.Join(mistakes...)
}

// CloseIdleConnections closes the idle connections of Base, when it knows how.
func (t *Transport) CloseIdleConnections() {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	if closer, ok := base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
