//go:build unix

package agenttest

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"omniagent/internal/core/event"
)

// client is a host in a process of the built program.
type client interface {
	process() *host
}

func (h *host) process() *host { return h }

// stallsClient is law 13 through a host: its client reads nothing while the agent prints a lot. The program is another
// process, in which the collector releases memory when it likes, so the bound is generous: buffering would need many
// times more.
func stallsClient(t *testing.T, s Subject) {
	const bound = 24 << 20
	weighed := func(stopped bool) (time.Duration, int64) {
		k := s.open(t, wish{})
		h := k.side.(client).process()
		k.endOf(k.say("say first"))
		if stopped {
			h.stop()
			defer h.goOn()
		}
		began := time.Now()
		turn := k.say(fmt.Sprint("flood ", flooded(s, 8)))
		k.mu.Lock()
		k.slim = true
		k.mu.Unlock()
		k.endOf(turn)
		took := time.Since(began)
		if stopped {
			time.Sleep(time.Until(began.Add(stoppedFor(t)))) // what is measured is this time
		}
		memory := h.memory()
		h.goOn()
		k.end()
		return took, memory
	}
	least := math.Inf(1)
	var most, alone int64
	for i := range 6 {
		a, m := weighed(false)
		b, n := weighed(true)
		least = min(least, b.Seconds()/a.Seconds())
		most, alone = n, m
		t.Logf("try %d: read %v, %d MiB; not read %v, %d MiB", i, a, m>>20, b, n>>20)
		if least <= 1.1 && most <= alone+bound {
			return
		}
	}
	t.Errorf("a client that does not read costs %d MiB, and the turn takes %.2f times as long", (most-alone)>>20, least)
}

// stoppedFor is the minimum time in which a client does not read; OMNIAGENT_STOPPED sets it, see bench/reader.
func stoppedFor(t *testing.T) time.Duration {
	text := os.Getenv("OMNIAGENT_STOPPED")
	if text == "" {
		return 0
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return long
}

// killHost is law 16 through a host.
func killHost(t *testing.T, s Subject, i int, after time.Duration) {
	t.Helper()
	k := s.open(t, wish{})
	h := k.side.(client).process()
	all := truth()
	if s.Host.single != "" {
		all = all[2:3]
	}
	for _, m := range all {
		if err := k.send(m); err != nil {
			t.Fatal(err)
		}
	}
	k.when("the first message", func(all []event.Event) bool { return len(all) > 0 })
	time.Sleep(after) // the moment itself
	_ = h.cmd.Process.Kill()
	<-h.ended
	k.end()
	when := fmt.Sprintf("kill %d after %v", i, after)
	if left := k.p.waitGone(10 * time.Second); left != "" {
		t.Fatalf("%s: left alive:\n%s", when, left)
	}
	before := k.events()
	if s.Host.mute { // the caller continues what this process began, so it is opened directly
		s.Host = Direct()
	}
	again := s.open(t, wish{in: k.p, resume: k.id()})
	if now := again.events(); len(now) < len(before) || told(now[:len(before)]) != told(before) {
		t.Errorf("%s: a reader got what is not in the journal", when)
	}
	again.judgeKilled(when, "")
	again.end()
}
