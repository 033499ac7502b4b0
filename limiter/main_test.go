package limiter

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	arrivals = flag.Int("arrivals", 100_000, "how many random arrivals each algorithm is held against its definition for; other long tests scale with it")
	update   = flag.Bool("update", false, "rewrite the comparison table in doc.go")
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is where scripts begin: the beginning of a minute, an hour and a second.
var noon = time.Date(2031, 3, 14, 12, 0, 0, 0, time.UTC)

const nano = 1_000_000_000 // nano-units in a unit, and nanoseconds in a second
