package gemini

import "testing"

func TestTotalMemory(t *testing.T) {
	for text, want := range map[string]int{
		"MemTotal:       24684084 kB\nMemFree:        1 kB\n": 24105, "MemFree: 1 kB\n": 0, "": 0, "MemTotal: x kB": 0,
	} {
		if got := totalMemory([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if memory() < 64 {
		t.Errorf("this machine has %d MiB", memory())
	}
}
