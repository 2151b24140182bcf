package claude_test

import "testing"

func BenchmarkEvent(b *testing.B) {
	e := encoder()
	e.Partial = true
	e.Event(began)
	for b.Loop() {
		e.Event(text("a piece of text"))
	}
}
