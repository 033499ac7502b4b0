// Command table prints what heed and other clients add to one request.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/heedhttp/heed/benchmarks"
)

func main() {
	rounds := flag.Int("rounds", 101, "turns of each client")
	sends := flag.Int("sends", 2_000, "requests in one turn")
	flag.Parse()
	out, err := benchmarks.Tables(benchmarks.Plan{Rounds: *rounds, Sends: *sends})
	if err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
	fmt.Print(out)
}
