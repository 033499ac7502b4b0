package benchmarks

import (
	"fmt"
	"math"
	"net/http"
	"runtime"
	"strings"
	"time"
)

// Tables measures everything and writes it as Markdown. in is how much is sent
// in the process; of connections a hundredth of the requests is enough turns.
func Tables(in Plan) (string, error) {
	var b strings.Builder
	const page = "https://api.example.com/v1/items?page=2"
	for _, x := range []struct {
		title string
		req   *http.Request
	}{
		{"Over a base that answers at once, a request with no header:", Request(page, false)},
		{"Over a base that answers at once, a request with three header fields:", Request(page, true)},
	} {
		rows, err := Measure(Clients(), new(Instant), x.req, in)
		if err != nil {
			return "", err
		}
		b.WriteString(Table(x.title, rows) + "\n")
	}

	srv := Loopback()
	defer srv.Close()
	base := http.DefaultTransport.(*http.Transport).Clone()
	defer base.CloseIdleConnections()
	far := Plan{Rounds: max(in.Rounds*in.Sends/100, 1), Sends: 1}
	rows, err := Measure(Clients(), base, Request(srv.URL, true), far)
	if err != nil {
		return "", err
	}
	b.WriteString(Table("Over http.Transport and a server on the loopback:", rows))
	fmt.Fprintf(&b, "\nThe base's own cost is taken off. Medians of %d rounds in turns, of %d requests each in the process, of %d over the loopback; %s, %s, %s.\n",
		in.Rounds, in.Sends, far.Rounds, time.Now().Format(time.DateOnly), runtime.Version(), Machine())
	return b.String(), nil
}

// Table writes rows as Markdown.
func Table(title string, rows []Added) string {
	var b strings.Builder
	b.WriteString(title + "\n\n")
	b.WriteString("| client | added ns/op | best | added B/op | added allocs/op |\n")
	b.WriteString("|---|--:|--:|--:|--:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", r.Client, r.Time.Nanoseconds(), r.Best.Nanoseconds(),
			int(math.Round(r.Bytes)), int(math.Round(r.Allocs)))
	}
	return b.String()
}

// Machine says what class of machine this is, and nothing that tells it apart.
func Machine() string {
	arch := map[string]string{"amd64": "x86-64", "arm64": "ARM64", "386": "x86"}[runtime.GOARCH]
	if arch == "" {
		arch = runtime.GOARCH
	}
	system := map[string]string{"linux": "Linux", "darwin": "macOS", "windows": "Windows", "freebsd": "FreeBSD"}[runtime.GOOS]
	if system == "" {
		system = runtime.GOOS
	}
	return fmt.Sprintf("%d-core %s %s", runtime.NumCPU(), arch, system)
}
