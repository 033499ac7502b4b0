//go:build race

package heedtest_test

// manyArrivals is the default of the flag -arrivals: less, because the race
// detector makes each cost ten times as much.
const manyArrivals = 5_000
