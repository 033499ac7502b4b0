//go:build !race

package heed

// overheadCounts: allocations are as in production. The race detector adds its own.
const overheadCounts = true
