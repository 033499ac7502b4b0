//go:build race

package limiter

// underRace says that everything is several times slower and that allocations are not what they are.
const underRace = true
