// Package benchmarks measures what heed adds to a request, beside other
// clients that retry. Every number is a difference to the same request sent by
// the bare base, of runs that take turns, so that a busy machine slows all
// alike. Run
//
//	go run ./benchmarks/cmd/table
//
// for the table, and go test -bench . ./benchmarks for the parts.
package benchmarks
