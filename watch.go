package heed

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// watch tells the Observer and the Logger what happens.
type watch struct {
	observer *Observer // never nil
	logger   *slog.Logger
}

// longWait is from when on a wait is worth a log line.
const longWait = time.Second

func (w *watch) waiting(c *call, req *http.Request, reason Reason, v verdict) {
	if v.wait == never {
		v.wait = 0
	}
	if h := w.observer.Waiting; h != nil {
		e := c.event(req)
		e.Attempt++
		e.Reason, e.Wait, e.Reading.Limit = reason, v.wait, v.limit
		h(e)
	}
	if w.logger != nil && v.wait >= longWait {
		w.logger.LogAttrs(c, slog.LevelInfo, "heed: waiting", slog.String("scope", c.scope.name),
			slog.String("reason", string(reason)), slog.Duration("wait", v.wait), slog.String("url", redact(req.URL)))
	}
}

func (w *watch) sent(c *call, req *http.Request) {
	if h := w.observer.Sent; h != nil {
		h(c.event(req))
	}
}

func (w *watch) answered(c *call, req *http.Request, resp *http.Response, err error) {
	hooks := w.observer
	if hooks.Answered != nil {
		e := c.event(req)
		e.Err, e.Limited = err, c.feedback.Limited
		if resp != nil {
			e.Status = resp.StatusCode
		}
		e.Took = time.Since(c.sent.time())
		hooks.Answered(e)
	}
	if hooks.LimitSeen != nil {
		for _, r := range c.feedback.Readings {
			e := c.event(req)
			e.Reading = r
			hooks.LimitSeen(e)
		}
	}
}

func (w *watch) held(c *call, d time.Duration) {
	if h := w.observer.Held; h != nil {
		h(Event{Context: c.Context, Scope: c.scope.name, Reason: ReasonHold, Wait: d, Attempt: c.info.Attempts, Limited: c.feedback.Limited})
	}
	if w.logger != nil {
		w.logger.LogAttrs(c, slog.LevelInfo, "heed: scope on hold", slog.String("scope", c.scope.name),
			slog.Duration("wait", d), slog.String("kind", c.feedback.Kind.String()))
	}
}

func (w *watch) retrying(c *call, req *http.Request, o outcome, pause time.Duration) {
	if h := w.observer.Retrying; h != nil {
		e := c.event(req)
		e.Status, e.Err, e.Limited, e.Wait = o.status, o.err, o.limited, pause
		h(e)
	}
	if w.logger != nil {
		w.logger.LogAttrs(c, slog.LevelInfo, "heed: sending again", slog.String("url", redact(req.URL)),
			slog.Int("sends", c.info.Attempts), slog.Int("status", o.status), slog.Duration("pause", pause))
	}
}

func (w *watch) gaveUp(c *call, req *http.Request, resp *http.Response, err error) {
	if h := w.observer.GaveUp; h != nil {
		e := c.event(req)
		e.Err, e.Stop = err, c.info.Stopped
		if resp != nil {
			e.Status, e.Limited = resp.StatusCode, c.feedback.Limited
		}
		h(e)
	}
	if w.logger != nil && w.logger.Enabled(context.Background(), slog.LevelWarn) {
		status := 0
		if resp != nil {
			status = resp.StatusCode
		}
		w.logger.LogAttrs(c, slog.LevelWarn, "heed: gave up", slog.String("url", redact(req.URL)),
			slog.Int("sends", c.info.Attempts), slog.Int("status", status), slog.String("stop", string(c.info.Stopped)))
	}
}

func (w *watch) cached(c *call, req *http.Request) {
	if h := w.observer.Cached; h != nil {
		e := c.event(req)
		e.Cache = c.info.Cache
		h(e)
	}
}
