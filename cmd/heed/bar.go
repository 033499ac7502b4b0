package main

import (
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// bar is the progress bar of a run, on a terminal.
type bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
}

// newBar shows a bar on w at once. status is asked for the end of the line and
// for how long it still goes on, several times a second.
func newBar(w io.Writer, status func() (line string, left time.Duration)) *bar {
	began := time.Now()
	p := mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(200*time.Millisecond))
	return &bar{p, p.New(0,
		mpb.BarStyle().Rbound("] "),
		mpb.BarWidth(24),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(
			decor.Percentage(decor.WC{W: 4}),
			decor.Any(func(s decor.Statistics) string {
				line, left := status()
				return "  eta " + eta(s.Current, s.Total, time.Since(began), left) + "  " + line
			}),
		),
	)}
}

// eta is how long the rest takes at the pace so far, and at least as long as
// the wait that is known.
func eta(done, total int64, took, wait time.Duration) string {
	if done == 0 || done > total {
		if wait > 0 {
			return "over " + showSpan(wait.Round(time.Second))
		}
		return "?"
	}
	rest := time.Duration(float64(took) / float64(done) * float64(total-done))
	return showSpan(max(rest, wait).Round(time.Second))
}

func (b *bar) set(done, total int64) {
	b.bar.SetTotal(total, false)
	b.bar.SetCurrent(done)
}

// above prints whole lines above the bar; false when the bar is gone.
func (b *bar) above(p []byte) bool {
	_, err := b.progress.Write(p)
	return err == nil
}

func (b *bar) close() {
	b.bar.Abort(true)
	b.progress.Wait()
}
