// Package peer stands beside habits.
package peer

// Zero is zero.
const Zero = 0
