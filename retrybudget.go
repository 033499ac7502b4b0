package heed

// The retry budget bounds what retries add to the load of a sick server: each
// scope has units that successes fill and retries spend, counted before the wait.

// succeeded gives a little back after a call that did not fail.
func (l *throttleLayer) succeeded(c *call, r *Retry) {
	s := c.scope
	if s == nil || r.Reserve < 0 {
		return
	}
	s.mu.Lock()
	s.credit = min(s.endowed(r)+reservePerGood, max(reserveCeiling, r.Reserve))
	s.mu.Unlock()
}

// endowed is the credit, with the reserve that the scope begins with. The scope is locked.
func (s *scope) endowed(r *Retry) float64 {
	if !s.drawn {
		s.credit, s.drawn = defaultReserve, true
		if r.Reserve > 0 {
			s.credit = r.Reserve
		}
	}
	return s.credit
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
	const rounding = 1e-9
	if s.endowed(r)+rounding < price {
		return false
	}
	s.credit -= price
	return true
}
