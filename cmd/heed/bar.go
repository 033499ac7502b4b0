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

// newBar shows a bar on w at once. status is asked for the end of the line,
// several times a second.
func newBar(w io.Writer, status func() string) *bar {
	p := mpb.New(mpb.WithOutput(w), mpb.WithAutoRefresh(), mpb.WithRefreshRate(200*time.Millisecond))
	return &bar{p, p.New(0,
		mpb.BarStyle().Rbound("] "),
		mpb.BarWidth(24),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.CountersNoUnit("%d/%d")),
		mpb.AppendDecorators(
			decor.Percentage(decor.WC{W: 4}),
			decor.Name("  eta "),
			decor.AverageETA(decor.ET_STYLE_GO),
			decor.Any(func(decor.Statistics) string { return "  " + status() }),
		),
	)}
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
