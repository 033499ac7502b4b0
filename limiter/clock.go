package limiter

import "time"

// clock reads the time for a shell that holds a lock. Forward steps of the wall clock are followed, since a machine that slept has
// really been away; backward steps are not.
type clock struct {
	last time.Time
}

func (c *clock) now() time.Time { return c.read(time.Now()) }

// read turns a reading of the wall and monotonic clocks into the later of the wall and of what the monotonic clock makes of the
// reading before.
func (c *clock) read(now time.Time) time.Time {
	if !c.last.IsZero() {
		if ran := c.last.Add(now.Sub(c.last)); ran.UnixNano() > now.UnixNano() {
			now = ran
		}
	}
	c.last = now
	return now
}
