package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniagent/internal/walls/shell"
)

// TestMessagesAreShort: what a message quotes of a file or an input has a limit, for each is a part of every later
// request.
func TestMessagesAreShort(t *testing.T) {
	in := input{tool: "X", example: "{}"}
	for i := range 9 {
		in.problem("problem %d", i)
	}
	if got := in.err().Error(); strings.Count(got, "problem ") != 5 || !strings.Contains(got, "and 4 more problems") {
		t.Errorf("problems of an input: %s", got)
	}
	for _, n := range []int{61, 1000} {
		if got := clip(strings.Repeat("é", n)); got != strings.Repeat("é", 60)+"…" {
			t.Errorf("%d letters: %s", n, got)
		}
	}
	if got := firstDifference("x"+strings.Repeat("a", 1000), "x"+strings.Repeat("b", 1000)); len(got) > 200 {
		t.Errorf("a difference: %s", got)
	}
	n := notebook{}
	for i := range 30 {
		start := len(n.text)
		n.text = fmt.Appendf(n.text, `{"id":"id-%d"}`, i)
		n.cells = append(n.cells, spot{start, len(n.text)})
	}
	if got := n.choices(); !strings.Contains(got, "0 to 29") || strings.Count(got, "id-") != 20 {
		t.Errorf("cells: %s", got)
	}
}

// TestLittleIsHeldOfAFile: a search in a large file holds and compares only as much as its message shows.
func TestLittleIsHeldOfAFile(t *testing.T) {
	many := strings.Repeat("a\n", 1000)
	hits := count(locate([]byte(many), endings{}, "a"))
	if len(hits.first) != maxFirst || hits.count != 1000 {
		t.Errorf("%d of %d places are held", len(hits.first), hits.count)
	}
	if n := len(newNear(t.Context(), many).lines); n != 200 {
		t.Errorf("%d lines are compared", n)
	}
	if long := make([]byte, longestShown+1); shownBefore(long, true).ok ||
		changeOf(nil, &subject{}, before{ok: true}, long) != nil {
		t.Error("a host is shown a file of any size")
	}
}

// TestManyAlternatives: each would be searched for by itself.
func TestManyAlternatives(t *testing.T) {
	for n, searched := range map[int]int{needlesMost: needlesMost, needlesMost + 1: 0} {
		var words []string
		for i := range n {
			words = append(words, fmt.Sprintf("%cword", 'a'+i))
		}
		p, err := parseGrep(strings.Join(words, "|"), false, false)
		if err != nil || len(p.needles) != searched {
			t.Errorf("of %d alternatives %d are searched for: %v", n, len(p.needles), err)
		}
	}
}

// TestPiecesOfText: a regular expression without a text to look for gets short pieces at first and after a match, and
// never a long one, for which package regexp would take its slow machine.
func TestPiecesOfText(t *testing.T) {
	p, err := parseGrep(`[0-9]`, false, false)
	if err != nil {
		t.Fatal(err)
	}
	none := []byte(strings.Repeat("a\n", 100_000))
	var hints needleHints
	if first := hints.nextPiece(); first != 128 {
		t.Errorf("the first piece has %d bytes", first)
	}
	if begin, _, _ := p.find(none, 0, &hints); begin >= 0 || hints.piece != 8<<10 {
		t.Errorf("far from a match a piece has %d bytes", hints.piece)
	}
	if begin, _, _ := p.find(append(none, "1\n"...), 0, &hints); begin != len(none) || hints.piece != 128 {
		t.Errorf("after the match at %d of %d the piece has %d bytes", begin, len(none), hints.piece)
	}
}

// TestLongRules: a file of rules that is too large is not read.
func TestLongRules(t *testing.T) {
	for n, read := range map[int]bool{0: true, rulesLimit: false} {
		e := newDesk(t).env
		e.Excludes = filepath.Join(t.TempDir(), "excludes")
		if err := os.WriteFile(e.Excludes, []byte("x\n"+strings.Repeat("#", n)), 0o600); err != nil {
			t.Fatal(err)
		}
		if area := newSearchArea(e, ".", ".rgignore"); (area.user != nil) != read {
			t.Errorf("%d bytes of rules are read: %t", n, !read)
		}
	}
}

// endless has one command that never ends.
type endless struct{ Shell }

func (endless) Jobs() []shell.Job { return []shell.Job{{ID: "1", Running: true}} }

func (e endless) Output(string, *regexp.Regexp) (shell.Job, error) { return e.Jobs()[0], nil }

func (endless) Wait(ctx context.Context, _ string) { <-ctx.Done() }

// TestLongWait: however long a model wants to wait for a command, it hears after ten minutes that it still runs.
func TestLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		a, err := TaskOutput(&Env{Shell: endless{}}).Plan(json.RawMessage(`{"task_id":"1","timeout":999999999}`))
		if err != nil {
			t.Fatal(err)
		}
		if r := a.Run(t.Context()); time.Since(began) != 10*time.Minute || !strings.Contains(r.Text, "timeout") {
			t.Errorf("after %s: %s", time.Since(began), r.Text)
		}
	})
}
