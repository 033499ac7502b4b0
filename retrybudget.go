package heed

// The retry budget bounds what retries add to the load of a sick server: each
// scope has units that successes fill and retries spend, counted before the wait.

// succeeded gives a little back after a call that did not fail.
func (l *throttleLayer) succeeded(c *call) {
	s := c.scope
	if s == nil {
		return
	}
	s.mu.Lock()
	if s.drawn {
		s.credit = min(s.credit+reservePerGood, reserveCeiling)
	}
	s.mu.Unlock()
}

// afford takes what a retry costs, or says that the scope cannot.
func (l *throttleLayer) afford(c *call, r *Retry, limited bool) bool {
	s := c.scope
	if r.Reserve < 0 || s == nil {
		return true
	}
	price := 1.0
	if limited {
		price = reserveThrottled
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drawn {
		s.credit, s.drawn = defaultReserve, true
		if r.Reserve > 0 {
			s.credit = r.Reserve
		}
	}
	const rounding = 1e-9
	if s.credit+rounding < price {
		return false
	}
	s.credit -= price
	return true
}
