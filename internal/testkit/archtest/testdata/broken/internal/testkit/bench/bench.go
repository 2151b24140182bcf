// Package bench measures.
package bench

import "broken/internal/cli/high"

// Zero is zero.
const Zero = high.Zero
