// Package low may be imported.
package low

// Zero is zero.
const Zero = 0
