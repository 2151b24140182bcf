// Package demo stands apart.
package demo

// Zero is zero.
const Zero = 0
