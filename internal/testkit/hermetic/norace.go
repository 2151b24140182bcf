//go:build !race

package hermetic

// Raced reports whether the race detector is part of this binary. Everything is slower then, and not evenly.
const Raced = false
