// Command quickstart fetches the same resources of a limited API twice: with a
// client that answers every refusal by asking again at once, and with heed.
// The API is a real server on the loopback interface, which lets 20 requests a
// second through with a burst of 20. Nothing leaves this machine.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(start(ctx, os.Args[1:], os.Stdout, os.Stderr, live(os.Stderr)))
}

// start is the program apart from the process around it. Its result is the exit status.
func start(ctx context.Context, args []string, stdout, stderr io.Writer, live bool) int {
	p, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	err = compare(ctx, p, stdout, progress{w: stderr, live: live})
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "quickstart: interrupted")
		return 130
	case err != nil:
		fmt.Fprintln(stderr, "quickstart:", err)
		return 1
	}
	return 0
}

// compare runs one crawl after the other and prints what came of them.
func compare(ctx context.Context, p plan, stdout io.Writer, show progress) error {
	fmt.Fprintf(stdout, "%d resources, %d workers; the API lets %g requests a second through, %g at once.\n\n",
		p.items, p.workers, p.rate, p.burst)
	var rows []result
	for _, c := range clients {
		r, err := crawl(ctx, p, c, show)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, r)
	}
	return table(stdout, rows)
}
