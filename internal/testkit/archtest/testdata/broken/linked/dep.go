// Package dep is linked.
package dep

// Zero is zero.
const Zero = 0
