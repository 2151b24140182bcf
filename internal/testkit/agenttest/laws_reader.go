//go:build unix

package agenttest

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/talk/conversation"
)

func trimmed(line string) string { return strings.TrimSuffix(line, "\n") }

// floodVariable is the number of megabytes.
const floodVariable = "OMNIAGENT_FLOOD"

// flooded is how many megabytes an agent says while a reader has stopped: everyday ones, which are several times what
// the reader may cost. OMNIAGENT_FLOOD changes it: scripts/test sets twenty, and with --long the hundred that the law
// names. An answer of a model is limited, and here each word of it is an event of its own: the engine gets no more than
// fits.
func flooded(s Subject, everyday int) int {
	megabytes := everyday
	if n := os.Getenv(floodVariable); n != "" {
		megabytes = number(n)
	}
	if s.Driver == nil {
		megabytes = min(megabytes, 20)
	}
	return megabytes
}

// stalls: a reader that stops while the agent says a lot costs at most 1 MiB and does not slow the agent by
// more than a tenth. Both are differences to the same turn without such a reader, in a process of their own. Of the
// times of several tries the best counts, since other work on the machine only adds. Of the heaps the median counts:
// now and then one has 4 MiB less.
func stalls(t *testing.T, s Subject) {
	if s.Host.Name != Direct().Name {
		stallsClient(t, s)
		return
	}
	const tries = 8
	message := task(fmt.Sprint("flood ", flooded(s, 4)))
	weighed := func(stopped bool) measured {
		p := newPlace(t, s)
		o := order{Agent: s.Agent, Mode: "yolo", Messages: []string{message}, Stopped: stopped, Measure: true}
		h := p.holdElsewhere(t, o)
		line, err := h.out.ReadString('\n')
		var m measured
		if err != nil || json.Unmarshal([]byte(line), &m) != nil || m.Heap == 0 {
			t.Fatalf("it said %q: %v", line, err)
		}
		if err := os.RemoveAll(p.store().Dir()); err != nil {
			t.Fatal(err)
		}
		return m
	}
	least := math.Inf(1) // of the ratios of two turns, one right after the other
	var alone, beside []int64
	var more int64
	for i := range tries {
		a, b := weighed(false), weighed(true)
		least = min(least, b.Took.Seconds()/a.Took.Seconds())
		alone, beside = append(alone, int64(a.Heap)), append(beside, int64(b.Heap))
		more = median(beside) - median(alone)
		t.Logf("try %d: alone %v, %d KiB; beside a reader that stopped %v, %d KiB", i, a.Took, a.Heap>>10, b.Took,
			b.Heap>>10)
		if more <= 1<<20 && least <= 1.1 {
			return
		}
	}
	t.Errorf("a reader that stopped costs %d KiB, and the turn takes %.2f times as long", more>>10, least)
}

func median(of []int64) int64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// killed: after kill -9 of the host at any moment the journal opens, has exactly what readers got, names the turn whose
// outcome is unknown, and nothing that was started is alive.
func killed(t *testing.T, s Subject) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range kills(t) {
		after := time.Duration(random.Int64N(int64(250 * time.Millisecond)))
		if s.Host.Name != Direct().Name {
			killHost(t, s, i, after)
			continue
		}
		killOnce(t, s, i, after)
	}
}

// truth is what a host got while it was killed.
func truth() []string {
	return []string{
		task("say a"), task("pieces 50", "family"), task("pieces 2000", "work"), task("say b"),
		task("say c"),
	}
}

func killOnce(t *testing.T, s Subject, i int, after time.Duration) {
	t.Helper()
	p := newPlace(t, s)
	h := p.holdElsewhere(t, order{Agent: s.Agent, Mode: "yolo", Messages: truth()})
	time.AfterFunc(after, func() { _ = h.cmd.Process.Kill() })
	said, err := io.ReadAll(h.out)
	if err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	if left := p.waitGone(10 * time.Second); left != "" {
		t.Fatalf("kill %d after %v: left alive:\n%s", i, after, left)
	}
	if h.id == "" {
		return // it was killed before there was a conversation
	}
	k := s.open(t, wish{in: p, resume: h.id})
	k.judgeKilled(fmt.Sprintf("kill %d after %v", i, after), string(said))
	k.end()
}

// judgeKilled examines a conversation that is opened again after its host was killed. said are the numbered lines that
// the host's reader got; the last one may be truncated.
func (k *talk) judgeKilled(when, said string) {
	k.t.Helper()
	last := k.endOf(k.say("say on"))
	whole := k.entries(1)
	disk := map[int64]string{}
	for i, e := range whole {
		if e.Number != int64(i+1) {
			k.t.Fatalf("%s: record %d has number %d", when, i+1, e.Number)
		}
		if ev := e.Event(); ev != nil {
			disk[e.Number] = roundTrip(k.t, *ev)
		}
	}
	lines := strings.Split(said, "\n")
	for _, line := range lines[:len(lines)-1] {
		n, data, _ := strings.Cut(line, " ")
		seq, _ := strconv.ParseInt(n, 10, 64)
		if disk[seq] != data {
			k.t.Fatalf("%s: a reader got record %s\n%s\nthe journal has\n%s", when, n, data, disk[seq])
		}
	}
	accepted := map[int64]bool{}
	var ended []int64
	for _, e := range k.events() {
		switch e.Kind {
		case event.Prompted:
			accepted[e.Turn] = true
		case event.Ended:
			ended = append(ended, e.Turn)
			if conversation.Abandoned(e.End) && (e.End.OK || len(e.End.Notes) == 0) {
				k.t.Errorf("%s: %+v", when, e.End)
			}
		}
	}
	if len(ended) != len(accepted) || !slices.IsSorted(ended) {
		k.t.Fatalf("%s: %d messages, ends of %v\n%s", when, len(accepted), ended, told(k.events()))
	}
	if !last.End.OK || last.Turn != int64(len(accepted)) {
		k.t.Fatalf("%s: the conversation does not go on: %+v", when, last)
	}
}
