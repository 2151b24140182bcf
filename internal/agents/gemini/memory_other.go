//go:build !linux && !darwin

package gemini

// memory returns 0, because it is not measured on this system.
func memory() int { return 0 }
