//go:build unix

package terminal

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/term/cells"
	"omniagent/internal/testkit/emulator"
)

// TestScrollback: what the emulators have is the finished lines.
func TestScrollback(t *testing.T) {
	t.Parallel()
	for name, emulate := range map[string]func(*testing.T, int, int) *emulator.Emulator{
		"xterm": emulator.Xterm,
		"pyte":  emulator.Pyte,
	} {
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
				want = emulator.Trim(rows)
			}
			if wrong := emulator.Differ(w.emulator.Look().Lines, want); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}

// tries is how often a conversation through 50 sizes may be repeated until nothing is wrong with its scrollback. Sizes
// change so fast here that some frame meets two of them: its first half one, its second half the other. That leaves a
// row behind, once in about a thousand changes, and nothing that a program writes can exclude it.
const tries = 3

// throughSizes lets a conversation be held again if a frame was torn. what tells what is wrong with it.
func throughSizes(t *testing.T, converse func(random *rand.Rand) (wrong string)) {
	t.Helper()
	for range tries {
		seed := uint64(time.Now().UnixNano())
		wrong := converse(rand.New(rand.NewPCG(seed, 0)))
		if wrong == "" {
			return
		}
		t.Logf("seed %d: %s", seed, wrong)
	}
	t.Error("no conversation came through")
}

// TestResizes: the same while the window changes its size all the time.
func TestResizes(t *testing.T) {
	t.Parallel()
	throughSizes(t, func(random *rand.Rand) string {
		file := filepath.Join(t.TempDir(), "transcript")
		w := open(t, emulator.Xterm(t, 80, 24), 80, 24, "-transcript", file, "-script", long(t, 20), "-rate", "1000")
		w.sees("say something")
		w.types("hello\r")
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
		wrong := emulator.Differ(w.emulator.Look().Lines, transcript(t, file))
		if record := os.Getenv("OMNIAGENT_TEST_RECORD"); wrong != "" && record != "" {
			data, err := json.Marshal(w.record)
			if err == nil {
				err = os.WriteFile(record, data, 0o600)
			}
			t.Log(record, err)
		}
		return wrong
	})
}
