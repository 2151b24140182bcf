// Package bench measures.
package bench

import "broken/internal/high"

// Zero is zero.
const Zero = high.Zero
