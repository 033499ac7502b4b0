//go:build race

package heed

// overheadCounts: the race detector adds allocations of its own.
const overheadCounts = false
