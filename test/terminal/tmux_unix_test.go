//go:build unix

package terminal

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/testkit/emulator"
	"omniagent/internal/testkit/hermetic"
)

// TestTmux: what tmux has after 50 changes of the size is the finished lines.
func TestTmux(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	throughSizes(t, func(random *rand.Rand) string {
		file := filepath.Join(t.TempDir(), "transcript")
		p := emulator.Tmux(t, "", []string{"NO_COLOR="}, talk, "-transcript", file, "-script", long(t, 20), "-rate",
			"1000")
		p.Shows("say something")
		p.Types("hello\r")
		for i := range 50 {
			time.Sleep(time.Duration(20+random.IntN(180)) * time.Millisecond)
			p.Run("resize-window", "-x", fmt.Sprint(50+random.IntN(90)), "-y", fmt.Sprint(20+random.IntN(30)))
			if i%5 == 0 {
				p.Types("typed ")
			}
		}
		p.Shows("word19-39")
		p.Types("\x15/quit")
		p.Shows("> /quit")
		p.Types("\r")
		p.Shows("goodbye")
		return emulator.Differ(p.Lines(), transcript(t, file))
	})
}
