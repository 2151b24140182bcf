package text

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is time.ParseDuration with days and without negative durations. It accepts a bare 0.
func Duration(written string) (time.Duration, bool) {
	rest := strings.TrimSpace(written)
	var days time.Duration
	if count, after, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.ParseUint(count, 10, 32)
		if err != nil || n > math.MaxInt64/uint64(24*time.Hour) {
			return 0, false
		}
		days = time.Duration(n) * 24 * time.Hour
		if rest = after; rest == "" {
			return days, true
		}
		if strings.ContainsAny(rest[:1], "+-") {
			return 0, false
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || d > math.MaxInt64-days {
		return 0, false
	}
	return days + d, true
}
