// Package command may import what stands apart.
package command

import "broken/internal/demo"

// Zero is zero.
const Zero = demo.Zero
