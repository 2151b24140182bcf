//go:build race

package relay

const raced = true // everything is slower then, and not evenly
