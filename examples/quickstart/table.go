package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
)

// table prints the results side by side.
func table(w io.Writer, rows []result) error {
	const first = "client"
	wide := len(first) // names stand to the left, figures to the right
	for _, r := range rows {
		wide = max(wide, len(r.client))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%-*s\ttime\trequests sent\t429s received\titems got\t\n", wide, first)
	for _, r := range rows {
		fmt.Fprintf(t, "%-*s\t%.1f s\t%s\t%s\t%d of %d\t\n",
			wide, r.client, r.took.Seconds(), grouped(r.sent), grouped(r.refused), r.got, r.of)
	}
	return t.Flush()
}

// grouped writes a number with a comma between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
