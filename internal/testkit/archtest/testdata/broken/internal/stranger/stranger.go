// Package stranger has no row.
package stranger
