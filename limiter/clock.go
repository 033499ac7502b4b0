package limiter

import "time"

// clock reads the time for a shell that holds a lock. Forward steps of the wall clock are followed, since a machine that slept has
// really been away; backward steps are not.
type clock struct {
	last time.Time
}

func (c *clock) now() time.Time {
	now := time.Now()
	return c.read(now, now.Sub(c.last))
}

// read turns what the wall says and how long the monotonic clock has run since the last reading into the next: the later of the wall
// and the last reading moved on.
func (c *clock) read(wall time.Time, ran time.Duration) time.Time {
	now := wall
	if !c.last.IsZero() {
		if moved := c.last.Add(ran); moved.UnixNano() > wall.UnixNano() {
			now = moved
		}
	}
	c.last = now
	return now
}
