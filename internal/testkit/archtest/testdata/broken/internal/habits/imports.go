// Package habits has bad ones.
package habits

import (
	"broken/internal/bench"
	"broken/internal/low"
	"broken/internal/peer"
)

var _ = bench.Zero + low.Zero + peer.Zero
