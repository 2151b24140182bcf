// Package high may import all that is below, but for what stands apart.
package high

import (
	"broken/internal/demo"
	"broken/internal/low"
)

// Zero is zero.
const Zero = low.Zero + demo.Zero
