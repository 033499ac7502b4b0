//go:build !race

package heedtest_test

// manyArrivals is the default of the flag -arrivals.
const manyArrivals = 100_000
