//go:build race

package session

const raced = true // everything is slower then, and not evenly
