package limiter

import "math/bits"

// wide is an unsigned number of 128 bits. Rates and windows multiply numbers of 63 bits with each other; in 128 bits the products
// are exact, so a decision at the very edge is the right one and nothing is lost however long the limiter runs.
type wide struct{ hi, lo uint64 }

func product(a, b uint64) wide {
	hi, lo := bits.Mul64(a, b)
	return wide{hi, lo}
}

func (a wide) isZero() bool { return a.hi|a.lo == 0 }

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

// plus must not overflow; every number here stays below 1<<126.
func (a wide) plus(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	return wide{a.hi + b.hi + carry, lo}
}

// minus is 0 when b is the greater.
func (a wide) minus(b wide) wide {
	if a.less(b) {
		return wide{}
	}
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	return wide{a.hi - b.hi - borrow, lo}
}

// over divides, rounding down; ok is false when the quotient needs more than 64 bits, as it does for n = 0.
func (a wide) over(n uint64) (quotient uint64, ok bool) {
	switch {
	case a.hi >= n:
		return 0, false
	case a.hi == 0:
		return a.lo / n, true
	}
	quotient, _ = bits.Div64(a.hi, a.lo, n)
	return quotient, true
}

// overUp divides, rounding up.
func (a wide) overUp(n uint64) (quotient uint64, ok bool) {
	if n == 0 {
		return 0, false
	}
	return a.plus(wide{0, n - 1}).over(n)
}
