package heed

import (
	"strings"
	"time"
)

// group is the fields that speak of one limit: the same family, the same name.
type group struct {
	family, limit string
	window        time.Duration
	unit          Unit
	scope         string
	from          string // the field that the reading is said to come from
	rank          role
	marked, sure  bool
	lent          bool // its reset or window went to the named limits

	quota, left, used, reset, after, span, fill, util, status []string
	resetScale, afterScale, spanScale                         time.Duration
	policies                                                  []string

	paired bool // the figures came as pairs in one field
	pair   *Reading
}

// hear takes what a field's name says.
func (g *group) hear(f field, n *headerName) {
	if g.window == 0 {
		g.window = n.window
	}
	g.unit = Unit(first(string(g.unit), string(n.unit)))
	g.scope = first(g.scope, n.scope)
	g.marked = g.marked || n.marked
	g.sure = g.sure || n.sure
	rank := n.role
	if rank > roleLeft {
		rank = roleNone
	}
	if g.from == "" || rank > g.rank {
		g.from, g.rank = f.name, rank
	}
}

func (g *group) take(f field, n *headerName) {
	switch n.role {
	case roleLimit:
		g.quota = f.lines
	case roleLeft:
		g.left = f.lines
	case roleUsed:
		g.used = f.lines
	case roleReset:
		g.reset, g.resetScale = f.lines, n.scale
	case roleAfter:
		g.after, g.afterScale = f.lines, n.scale
	case roleWindow:
		g.span, g.spanScale = f.lines, n.scale
	case roleFill:
		g.fill = f.lines
	case roleUtil:
		g.util = f.lines
	case roleStatus:
		g.status = f.lines
	}
}

// counts says whether the group states units at all.
func (g *group) counts() bool {
	return g.quota != nil || g.left != nil || g.used != nil || g.util != nil || g.status != nil || g.paired
}

// lend gives the reset and the window of a group that counts nothing to the
// named limits of its family that have none, as LaunchDarkly and BigCommerce mean it.
func (p *reader) lend() {
	for i := range p.n {
		from := p.at(i)
		if from.limit != "" {
			p.whole(from)
			continue
		}
		if from.counts() || from.policies != nil {
			continue
		}
		for j := range p.n {
			to := p.at(j)
			if i == j || to.limit == "" || !to.counts() || !strings.EqualFold(to.family, from.family) {
				continue
			}
			if to.reset == nil && to.after == nil {
				to.reset, to.resetScale, to.after, to.afterScale = from.reset, from.resetScale, from.after, from.afterScale
			}
			if to.span == nil && to.window == 0 {
				to.span, to.spanScale, to.fill = from.span, from.spanScale, from.fill
			}
			from.lent = true
		}
	}
}

// whole drops a group that only restates the state of groups named after it
// ("unified" beside "unified-5h").
func (p *reader) whole(g *group) {
	if g.status == nil || g.util != nil || g.quota != nil || g.left != nil {
		return
	}
	for i := range p.n {
		if strings.HasPrefix(p.at(i).limit, g.limit+"-") {
			g.lent = true
			if strings.EqualFold(firstItem(g.status), "rejected") {
				p.ev.allowance = true
			}
		}
	}
}

// read turns the group into one reading, or more when its fields are lists.
func (g *group) read(p *reader) {
	if g.paired {
		p.under(g, g.pair)
		return
	}
	if g.util != nil || g.status != nil && g.quota == nil && g.left == nil {
		g.share(p)
		return
	}
	if !g.marked && !g.sure {
		return
	}
	var a, b, c [2]item
	quota, left, used := collect(g.quota, a[:0]), collect(g.left, b[:0]), collect(g.used, c[:0])
	switch n := max(len(quota), len(left), len(used)); {
	case g.policies != nil || len(quota) > 1 && !quota[0].params && !quota[0].rated && windowed(quota[1:]):
		g.trio(p, quota, left, used)
	case n <= 1 && !(n == 1 && g.limit != "" && len(quota) == 1 && quota[0].colon):
		r := g.reading(p, at(quota, 0), at(left, 0), at(used, 0))
		g.whenWhole(p, &r, -1)
		p.emit(g, r)
	case rated(quota) || rated(left):
		g.byWindow(p, quota, left, used)
	case oneFigure(quota, true) && oneFigure(left, false) && oneFigure(used, false):
		// One limit, said again by what stands in between: the most restrictive counts.
		r := g.reading(p, extreme(quota, false), extreme(left, false), extreme(used, true))
		g.whenWhole(p, &r, -1)
		p.emit(g, r)
	default:
		for i := range n {
			r := g.reading(p, at(quota, i), at(left, i), at(used, i))
			g.whenWhole(p, &r, i)
			p.emit(g, r)
		}
	}
}

func collect(lines []string, into []item) []item {
	if len(lines) == 0 {
		return nil
	}
	for it := items(lines); ; {
		s, ok := it.next()
		if !ok {
			return into
		}
		into = append(into, readItem(s))
	}
}

func at(items []item, i int) *item {
	if i < len(items) {
		return &items[i]
	}
	return nil
}

// oneFigure says that the items may be one figure more than once: bare numbers,
// and where they must be alike, all the same. Quotas that differ are several limits.
func oneFigure(items []item, alike bool) bool {
	var first *item
	for i := range items {
		it := &items[i]
		if it.params || it.rated || it.hasUsed || it.name != "" {
			return false
		}
		if !it.ok {
			continue
		}
		if first == nil {
			first = it
		}
		if alike && it.n != first.n {
			return false
		}
	}
	return true
}

// extreme is the least of the figures, or the most; one that cannot be read gives way.
func extreme(items []item, most bool) (e *item) {
	for i := range items {
		it := &items[i]
		if e == nil || it.ok && (!e.ok || (it.n > e.n) == most) {
			e = it
		}
	}
	return e
}

func windowed(items []item) bool {
	for i := range items {
		if items[i].window > 0 {
			return true
		}
	}
	return false
}

func rated(items []item) bool { return len(items) > 0 && items[0].window > 0 }

// reading puts the figures of one limit together; any of them may be nil.
func (g *group) reading(p *reader, quota, left, used *item) (r Reading) {
	r.Limit.Name, r.Limit.Unit, r.Limit.Window, r.From = g.limit, g.unit, g.window, g.from
	if quota != nil {
		switch {
		case quota.ok:
			r.Limit.Quota = quota.n
			r.Has |= HasQuota
		case quota.unlimited || quota.negative:
			r.Has |= Unlimited
		}
		if quota.hasUsed {
			r.Used = quota.used
			r.Has |= HasUsed
		}
		r.describe(quota)
	}
	if left != nil {
		switch {
		case left.ok:
			r.Remaining = left.n
			r.Has |= HasRemaining
		case left.negative && p.ev.status >= 400, left.negative && left.n < -1:
			r.Has |= HasRemaining
		}
		r.describe(left)
	}
	if used != nil && used.ok {
		r.Used = used.n
		r.Has |= HasUsed
		r.describe(used)
	}
	if w := g.spanned(r.Limit.Quota); w > 0 && (r.Limit.Window == 0 || quota == nil || quota.window == 0) {
		r.Limit.Window = w
	}
	r.infer()
	return r
}

// describe takes the window and the name that a value carries itself.
func (r *Reading) describe(it *item) {
	if it.window > 0 && (r.Limit.Window == 0 || it.params || it.rated) {
		r.Limit.Window = it.window
	}
	if it.name != "" {
		r.Limit.Name = it.name
	}
}

// infer completes what follows from what was stated.
func (r *Reading) infer() {
	switch r.Has & (HasQuota | HasUsed | HasRemaining) {
	case HasQuota | HasUsed:
		r.Remaining = max(0, r.Limit.Quota-r.Used)
		r.Has |= HasRemaining
	case HasUsed | HasRemaining: // Reddit
		r.Limit.Quota = r.Used + r.Remaining
		r.Has |= HasQuota
	}
}

// spanned is the window that fields of its own state: an interval, or the time in which a bucket fills.
func (g *group) spanned(quota float64) time.Duration {
	var w time.Duration
	if len(g.span) > 0 {
		s := unquote(firstItem(g.span))
		if n, ok := number(s); ok && n > 0 {
			scale := 1.0
			if g.spanScale > 0 {
				scale = g.spanScale.Seconds()
			}
			w = seconds(n * scale)
		} else if !ok {
			w = windowOf(s)
		}
	}
	if len(g.fill) > 0 && quota > 0 {
		if n, ok := number(firstItem(g.fill)); ok && n > 0 {
			per := 1.0
			if w > 0 {
				per = w.Seconds()
			}
			return seconds(quota / n * per)
		}
	}
	return w
}

// whenWhole reads the reset of the i-th of several limits, or of the only one (-1: the latest that is said).
func (g *group) whenWhole(p *reader, r *Reading, i int) {
	lines, scale := g.after, g.afterScale
	if lines == nil {
		lines, scale = g.reset, g.resetScale
	}
	if lines == nil {
		return
	}
	for it, k := items(lines), 0; ; k++ {
		s, ok := it.next()
		if !ok {
			return
		}
		if i >= 0 && k != i {
			continue
		}
		t, ok := when(s, scale, p.ev.base)
		if !ok {
			continue
		}
		if scale == 0 && t.at.IsZero() && p.ev.inMillis(t.delta, r.Limit.Window) {
			t.delta /= 1000
		}
		if local := t.local(p.ev.now, p.ev.base); local.After(r.Reset) {
			r.Reset, r.absolute = local, !t.at.IsZero()
			if g.after != nil {
				p.ev.after = local.Sub(p.ev.now)
			}
		}
	}
}

// byWindow pairs lists whose items name their windows, as Riot Games and Docker send them.
func (g *group) byWindow(p *reader, quota, left, used []item) {
	main := quota
	if main == nil {
		main = left
	}
	find := func(list []item, w time.Duration, i int) *item {
		for k := range list {
			if list[k].window == w {
				return &list[k]
			}
		}
		if rated(list) {
			return nil
		}
		return at(list, i)
	}
	for i := range main {
		w := main[i].window
		r := g.reading(p, find(quota, w, i), find(left, w, i), find(used, w, i))
		if g.limit != "" && main[i].colon {
			r.Limit.Name = g.limit + ":" + decimal(w.Seconds())
		}
		g.whenWhole(p, &r, i)
		p.emit(g, r)
	}
}

// share reads a limit that is told as the part that is spent: Anthropic's unified limits.
func (g *group) share(p *reader) {
	r := Reading{Limit: Limit{Name: g.limit, Unit: UnitPercent, Quota: 100, Window: g.window}, From: g.from}
	n, ok := number(firstItem(g.util))
	switch {
	case strings.EqualFold(firstItem(g.status), "rejected"):
		r.Used, ok = 100, true
		p.ev.allowance = true
		if n > 1 {
			r.Used = n * 100
		}
	case ok && n <= 1e6:
		r.Used = n * 100
	}
	if !ok {
		return
	}
	r.Has = HasQuota | HasUsed
	r.infer()
	g.whenWhole(p, &r, -1)
	p.emit(g, r)
}

// emit adds a reading that says anything, once.
func (p *reader) emit(g *group, r Reading) {
	if r.Has&Unlimited != 0 && r.Has&HasUsed == 0 && r.Remaining == 0 {
		return
	}
	if r.Has == 0 && (r.Reset.IsZero() || !g.marked) {
		return
	}
	if p.ev.status < 400 && r.Has&HasQuota != 0 && r.Limit.Quota == 0 && r.Remaining == 0 && r.Used == 0 && !r.Reset.After(p.ev.now) {
		return // Tyk: all zero is no quota at all
	}
	for i := range p.fb.Readings {
		o := &p.fb.Readings[i]
		if o.Limit == r.Limit && o.Has == r.Has && o.Remaining == r.Remaining && o.Used == r.Used && o.Reset.Equal(r.Reset) {
			return
		}
	}
	if len(p.fb.Readings) >= maxReadings {
		return
	}
	p.fb.Readings = append(p.fb.Readings, r)
}

// maxReadings bounds the limits read of one answer.
const maxReadings = 64
