// Package habits has bad ones.
package habits

import (
	"broken/internal/host/peer"
	"broken/internal/kit/low"
	"broken/internal/testkit/bench"
)

var _ = bench.Zero + low.Zero + peer.Zero
