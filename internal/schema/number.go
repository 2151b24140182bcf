package schema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// mostDigits bounds the digits of a number, and its powers of ten.
const mostDigits = 10_000

// number is a number as it is written: its digits without zeros at either end, times ten to the power. Zero has no
// digits.
type number struct {
	negative bool
	digits   string
	power    int
}

func parseNumber(s string) (number, error) {
	mantissa, exponent, _ := strings.Cut(strings.Replace(s, "E", "e", 1), "e")
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return number{}, nil
	}
	power := 0
	if exponent != "" {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil || power > 1<<30 || power < -1<<30 {
			return number{}, outOfRange(s)
		}
	}
	power += len(digits) - len(trimmed) - len(fraction)
	if len(trimmed) > mostDigits || power > mostDigits || power < -mostDigits || power+len(trimmed) > mostDigits {
		return number{}, outOfRange(s)
	}
	return number{negative, trimmed, power}, nil
}

func outOfRange(s string) error {
	return fmt.Errorf("the number %s is out of range: at most %d digits and powers of ten", shorten(s, textShown),
		mostDigits)
}

// numberOf is that of a value that was decoded, so it is in range.
func numberOf(s string) number {
	n, _ := parseNumber(s)
	return n
}

func (n number) integer() bool { return n.power >= 0 }

// compare is negative, zero or positive as n is less than, equal to or greater than m.
func (n number) compare(m number) int {
	switch {
	case n == m:
		return 0
	case n.sign() != m.sign():
		return n.sign() - m.sign()
	}
	size := (len(n.digits) + n.power) - (len(m.digits) + m.power)
	if size == 0 {
		size = strings.Compare(n.digits, m.digits)
	}
	return size * n.sign()
}

func (n number) sign() int {
	switch {
	case n.digits == "":
		return 0
	case n.negative:
		return -1
	}
	return 1
}

// multiple says whether n is one of m, which is not zero.
//
// The digits of n do not end with a zero, so no multiple of ten times anything is among them: a smaller power of ten
// settles it.
func (n number) multiple(m number) bool {
	if n.digits == "" {
		return true
	}
	if n.power < m.power {
		return false
	}
	of := m.coefficient()
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.power-m.power)), of)
	rest := n.coefficient()
	rest.Mul(rest.Mod(rest, of), power)
	return rest.Mod(rest, of).Sign() == 0
}

func (n number) coefficient() *big.Int {
	i, _ := new(big.Int).SetString(n.digits, 10)
	return i
}

// count is a number that says how many: a whole one that is not negative. Beyond what can be counted it is the
// greatest.
func (n number) count() (int, bool) {
	if n.negative || !n.integer() {
		return 0, false
	}
	const most = 1 << 30
	if len(n.digits)+n.power > 9 {
		return most, true
	}
	i, err := strconv.Atoi("0" + n.digits + strings.Repeat("0", n.power))
	return min(i, most), err == nil
}
