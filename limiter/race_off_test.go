//go:build !race

package limiter

const underRace = false
