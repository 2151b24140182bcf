package schema

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNumbers holds the arithmetic on written numbers against fractions.
func TestNumbers(t *testing.T) {
	written := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := written.Draw(t, "a"), written.Draw(t, "b")
		if rapid.Bool().Draw(t, "multiple") { // seldom by chance
			x, _ := new(big.Rat).SetString(b)
			a = new(big.Rat).Mul(x, big.NewRat(rapid.Int64Range(-99, 99).Draw(t, "times"), 1)).FloatString(120)
		}
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		n, err := parseNumber(a)
		m, err2 := parseNumber(b)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if got := sign(n.compare(m)); got != x.Cmp(y) {
			t.Fatalf("%s to %s: %d", a, b, got)
		}
		if n.integer() != x.IsInt() {
			t.Fatalf("%s: %v", a, n.integer())
		}
		if y.Sign() != 0 && n.multiple(m) != new(big.Rat).Quo(x, y).IsInt() {
			t.Fatalf("%s of %s: %v", a, b, n.multiple(m))
		}
		if same := string(canonicalNumber(nil, n)) == string(canonicalNumber(nil, m)); same != (x.Cmp(y) == 0) {
			t.Fatalf("%s and %s: %v", a, b, same)
		}
	})
}

func sign(i int) int { return min(max(i, -1), 1) }

func TestRange(t *testing.T) {
	nines := strings.Repeat("9", mostDigits)
	for written, in := range map[string]bool{
		nines: true, nines + "0": false, nines + "9": false, "0." + nines: true, "0." + nines + "9": false,
		"1e9999": true, "1e10000": false, "-1e10000": false, "1e-10000": true, "1e-10001": false,
		"1e99999999999999999999": false,
		"0e99999999999999999999": true, "0.0E-99999999999": true, "1" + strings.Repeat("0", 1<<20): false,
		strings.Repeat("0", 3): true,
	} {
		if _, err := parseNumber(written); (err == nil) != in {
			t.Errorf("%.40s: %v", written, err)
		}
	}
	for written, want := range map[string]int{
		"0": 0, "-0": 0, "3.0": 3, "20": 20, "1e3": 1000, "1e99": 1 << 30,
		"-1": -1, "0.5": -1,
	} {
		n, err := parseNumber(written)
		if got, ok := n.count(); err != nil || ok != (want >= 0) || ok && got != want {
			t.Errorf("%s: %d, %v, %v", written, got, ok, err)
		}
	}
}
