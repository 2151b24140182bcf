//go:build !linux && !darwin

package gemini

// memory is not known here.
func memory() int { return 0 }
