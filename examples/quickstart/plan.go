package main

import (
	"flag"
	"fmt"
	"io"
)

// plan is what to crawl, and how the API is limited.
type plan struct {
	items, workers int
	rate, burst    float64 // requests a second, and at once
}

// parse reads the command line. A mistake in it has been told on stderr.
func parse(args []string, stderr io.Writer) (plan, error) {
	var p plan
	f := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&p.items, "items", 200, "how many resources to fetch")
	f.IntVar(&p.workers, "workers", 16, "how many to fetch at a time")
	f.Float64Var(&p.rate, "rate", 20, "requests a second that the API lets through")
	f.Float64Var(&p.burst, "burst", 20, "requests that it lets through at once")
	if err := f.Parse(args); err != nil {
		return p, err
	}
	if err := p.check(f.Args()); err != nil {
		fmt.Fprintln(stderr, "quickstart:", err)
		return p, err
	}
	return p, nil
}

func (p plan) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%q is too much; there are only flags, see -h", rest[0])
	case p.items < 1 || p.items > 1e6:
		return fmt.Errorf("-items is %d; give a number from 1 to 1000000", p.items)
	case p.workers < 1 || p.workers > 1000:
		return fmt.Errorf("-workers is %d; give a number from 1 to 1000", p.workers)
	case !(p.rate > 0 && p.rate <= 1e6):
		return fmt.Errorf("-rate is %g; give a number above 0, at most 1000000", p.rate)
	case !(p.burst >= 1 && p.burst <= 1e6):
		return fmt.Errorf("-burst is %g; give a number from 1 to 1000000", p.burst)
	}
	return nil
}
