package limiter_test

import (
	"fmt"
	"time"

	"github.com/heedhttp/heed/limiter"
)

// A core is asked with the instant, so an example or a test needs no clock.
func ExampleTokenBucket() {
	b := limiter.TokenBucket{Rate: 2, Burst: 3} // two a second, three at once
	now := time.Date(2031, 3, 14, 12, 0, 0, 0, time.UTC)
	for range 4 {
		r := b.Take(now, 1)
		fmt.Println(r.Allowed, r.Remaining, r.RetryAfter, r.Reset)
	}
	fmt.Println(b.Peek(now.Add(time.Second), 1).Remaining)
	// Output:
	// true 2 0s 500ms
	// true 1 0s 1s
	// true 0 0s 1.5s
	// false 0 500ms 1.5s
	// 1
}

func ExampleFixedWindow() {
	w := limiter.FixedWindow{Limit: 2, Window: time.Minute}
	now := time.Date(2031, 3, 14, 12, 0, 45, 0, time.UTC)
	for range 3 {
		r := w.Take(now, 1)
		fmt.Println(r.Allowed, r.Remaining, r.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 15s
}

// Requests that come at once leave one after another.
func ExampleLeakyBucket_Delay() {
	b := limiter.LeakyBucket{Rate: 5, Queue: 3}
	now := time.Date(2031, 3, 14, 12, 0, 0, 0, time.UTC)
	for range 4 {
		hold, ok := b.Delay(now, 1)
		fmt.Println(ok, hold)
	}
	// Output:
	// true 0s
	// true 200ms
	// true 400ms
	// false 200ms
}

func ExampleNew() {
	l := limiter.New(&limiter.SlidingLog{Limit: 2, Window: time.Hour})
	fmt.Println(l.Allow(), l.Allow(), l.Allow())
	r := l.Take(3)
	fmt.Println(r.Allowed, r.RetryAfter == limiter.Never) // three never fit into two
	// Output:
	// true true false
	// false true
}

func ExampleKeyed() {
	perUser := limiter.Keyed[string]{
		New:     func() limiter.Core { return &limiter.SlidingCounter{Limit: 1, Window: time.Hour} },
		MaxKeys: 10_000,
	}
	fmt.Println(perUser.Take("ada", 1).Allowed)
	fmt.Println(perUser.Take("ada", 1).Allowed)
	fmt.Println(perUser.Take("bob", 1).Allowed)
	fmt.Println(perUser.Len())
	// Output:
	// true
	// false
	// true
	// 2
}
