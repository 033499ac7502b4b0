// Package heed makes an http.Client respect remote rate limits.
//
// It reads what each server says about its limits, waits before a limit is hit
// rather than after, retries what is safe to retry, and answers from a cache
// what it can. One line adopts it, and taking it out is deleting that line:
//
//	client := &http.Client{Transport: &heed.Transport{}}
//
// # The picture
//
// A request goes down, its answer comes up:
//
//	caller
//	  │
//	  ▼
//	Cache      fresh answers cost nothing; RFC 9111, private
//	  │
//	Retry      who may be sent again; backoff and jitter; body replay
//	══╪══════  once per call above this line, once per attempt below it
//	Throttle   the queue: waits its turn under every limit known for this scope, then spends
//	  │   └─── Budget: the ledger behind it (this Transport │ this process)
//	Learn      reads every raw answer: status, headers, body → one Feedback → Throttle
//	  │
//	  ▼
//	Base       http.DefaultTransport, or yours
//
// Why each edge:
//
//   - Cache above Retry: a hit spends nothing and waits for nobody.
//   - Retry above Throttle: every attempt waits its turn and pays again. Retry
//     decides whether, Throttle decides when: a Retry-After holds the whole
//     scope, newcomers included, not only the call that received it.
//   - Throttle above Learn: the ledger is touched only when about to send.
//   - Learn on Base: it sees every raw answer, also those that Retry swallows.
//
// The fields of [Transport] stand in the same order.
//
// # Neighbours
//
// What signs or authenticates a request belongs below, as Base, so that it
// runs once per attempt; then set [Throttle].Identity if the credential is
// invisible above it. What measures the caller's view belongs above. A heed
// below another heed does not retry, so nesting does not multiply sends.
//
// # What comes back
//
// A 429 is never turned into an error: at give-up the last real response comes
// back with its body readable, and [InfoOf] says why it was not sent again. A
// call that cannot go within its bound is refused with a [*LimitError] as soon
// as that can be foreseen. http.Client.Timeout and the context's deadline cover
// waiting too; [Throttle].MaxWait bounds waits alone.
package heed
