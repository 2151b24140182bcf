//go:build unix

package terminal

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/cells"
)

// TestScrollback: what the emulators have is the finished lines.
func TestScrollback(t *testing.T) {
	t.Parallel()
	for name, emulate := range map[string]func(*testing.T, int, int) *emulator{"xterm": xterm, "pyte": pyte} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "transcript")
			w := open(t, emulate(t, 80, 24), 80, 24, "-transcript", file, "-script", long(t, 4), "-rate", "2000")
			w.sees("say something")
			w.types("hello\r")
			w.sees("word3-39")
			family := "👩‍👩‍👧"
			if name == "pyte" { // it drops what stands behind a joiner
				family = "👩"
			}
			w.types("and " + family + " more\x1b\rin two lines")
			w.shows("in two lines")
			w.types("\r/quit\r")
			if err := w.ends(); err != nil {
				t.Error(err)
			}
			want := transcript(t, file)
			if name == "pyte" { // it does not know which lines it has broken
				var rows []string
				for _, line := range want {
					rows = append(rows, cells.Break(line, 80)...)
				}
				want = trim(rows)
			}
			same(t, w.emulator.look().Lines, want)
		})
	}
}

// TestResizes: the same while the window changes its size all the time.
func TestResizes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "transcript")
	w := open(t, xterm(t, 80, 24), 80, 24, "-transcript", file, "-script", long(t, 20), "-rate", "1000")
	w.sees("say something")
	w.types("hello\r")
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
			if file := os.Getenv("OMNIAGENT_TEST_RECORD"); file != "" {
				data, err := json.Marshal(w.record)
				if err == nil {
					err = os.WriteFile(file, data, 0o600)
				}
				t.Log(file, err)
			}
		}
	}()
	for i := range 50 {
		time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond)
		w.resize(40+random.IntN(100), 16+random.IntN(34))
		if i%5 == 0 {
			w.types("typed ")
		}
	}
	w.sees("word19-39")
	w.types("\x15/quit")
	w.shows("> /quit") // a prompt of several rows on the way out is the one thing that is guessed
	w.types("\r")
	if err := w.ends(); err != nil {
		t.Error(err)
	}
	same(t, w.emulator.look().Lines, transcript(t, file))
}
