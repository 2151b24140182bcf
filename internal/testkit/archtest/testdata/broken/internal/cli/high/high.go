// Package high may import all that is below.
package high

import (
	"broken/internal/kit/low"
)

// Zero is zero.
const Zero = low.Zero
