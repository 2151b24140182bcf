package claim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/repo/claim"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/touch"
	"omniagent/internal/testkit/hermetic"
)

// TestOthersWorkBesideWithoutWalls lets a person, and a second run, work in the directory while an agent does, at
// random, where nothing sees the writes. The calls of the agent are recorded as they are, partly, or with lies among
// them; a conversation hears them, or the shim reads them afterwards. An undo changes nothing that the agent has not
// written, nor what another wrote last, nor a line of theirs. If the record is complete, it takes back what the agent
// alone has changed.
//
// A call counts from a moment before it was heard, so between two steps that moment passes, for all worlds at once.
func TestOthersWorkBesideWithoutWalls(t *testing.T) {
	t.Parallel()
	const together, steps = 250, 14
	all := hermetic.Times(1000, 30)
	for from := 0; from < all; from += together {
		var worlds []*world
		for seed := from; seed < min(from+together, all); seed++ {
			worlds = append(worlds, newWorld(t, uint64(seed)))
		}
		for step := range steps {
			for _, w := range worlds {
				w.step(step, steps)
			}
			pass(t)
		}
		for _, w := range worlds {
			w.check()
		}
	}
}

// pass waits until what comes next is too late for what has been, on the clock of the files.
func pass(t *testing.T) {
	t.Helper()
	clock := filepath.Join(t.TempDir(), "clock")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if err := os.WriteFile(clock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(clock); err != nil || info.ModTime().After(began.Add(320*time.Millisecond)) {
			return
		}
	}
}

const (
	agent  = "agent"
	person = "person"
	second = "second"
)

// How the calls of the agent are recorded.
const (
	honest = iota
	partly
	lying
)

// world is a directory with those who work in it.
type world struct {
	t       *testing.T
	seed    uint64
	dice    *rand.Rand
	dir     string
	store   undo.Store
	shim    bool
	record  int
	runs    map[string]*running // of the agent, and of the second one
	was     map[string]string
	last    map[string]string          // who has changed a path last
	by      map[string]map[string]bool // who has changed it at all
	vague   map[string]bool            // what the agent did to it explains nothing, as docs/undo.md says
	moved   map[string]bool            // by the agent
	calls   map[string]string          // of the agent, by the path that they name
	lines   int
	history []string
}

// running is a turn.
type running struct {
	who    string
	log    *touch.Log
	window *touch.Window
	hearer *claim.Reporter
	done   []event.FinishedCall // for the shim
	turn   *undo.Turn
	id     string
	open   *call
	calls  int
}

// call is one that is under way.
type call struct {
	event.Call
	began  time.Time
	acted  bool
	act    func() bool // nil: nothing happens
	paths  []string
	swap   json.RawMessage // the result tells another input
	asks   bool            // it waits for an answer, and never runs
	hidden bool            // it is not recorded
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, seed: seed, dice: rand.New(rand.NewPCG(seed, 40)), dir: filepath.Join(dir, "work"),
		store: undo.Store{Dir: filepath.Join(dir, "store")}, shim: seed%2 == 1, record: int(seed / 2 % 3),
		runs: map[string]*running{}, last: map[string]string{}, by: map[string]map[string]bool{},
		vague: map[string]bool{}, moved: map[string]bool{}, calls: map[string]string{},
	}
	for _, name := range []string{"a", "b", "c", "d", "old/e", "old/f"} {
		w.put(name, fmt.Sprintf("one of %s\ntwo of %s\nthree of %s\n", name, name, name))
	}
	w.was = w.look()
	w.last, w.by = map[string]string{}, map[string]map[string]bool{}
	w.start(agent)
	return w
}

func (w *world) start(who string) {
	r := &running{who: who, log: touch.New()}
	r.log.Unseen(touch.ReasonUnwatched)
	r.window = r.log.Open()
	if !w.shim {
		r.hearer = claim.NewReporter(r.log, w.dir)
	}
	var err error
	if r.turn, err = w.store.Begin(w.t.Context(), undo.Origin{Dir: w.dir, Run: who}); err != nil {
		w.t.Fatal(err)
	}
	r.id = r.turn.ID()
	w.runs[who] = r
}

func (w *world) end(who string) {
	r := w.runs[who]
	if r == nil || r.turn == nil {
		return
	}
	for r.open != nil {
		w.goOn(r)
	}
	if r.hearer != nil {
		r.hearer.Tell(&event.Event{Kind: event.Ended, End: &event.End{}})
	}
	for _, d := range r.done {
		for _, c := range claim.Claims(d, w.dir) {
			r.log.Claim(c)
		}
	}
	r.window.Close()
	r.turn.Watch(r.window)
	if _, err := r.turn.End(w.t.Context(), time.Now()); err != nil {
		w.t.Fatal(err)
	}
	r.turn = nil
	w.note("%s ends", who)
}

// step lets one of them do one thing.
func (w *world) step(step, of int) {
	a, b := w.runs[agent], w.runs[second]
	switch {
	case step == of-2:
		w.end(agent)
	case step == of-1:
		w.end(second)
		if w.dice.IntN(2) == 0 {
			w.person()
		}
	case step > 2 && b == nil && w.seed%3 == 0:
		w.start(second)
	case b != nil && w.dice.IntN(3) == 0:
		w.goOn(b)
	case w.dice.IntN(5) < 2:
		w.person()
	default:
		w.goOn(a)
	}
}

// goOn lets a turn begin a call, or go on with it.
func (w *world) goOn(r *running) {
	if r.open == nil {
		if r.open = w.call(r.who); r.open == nil {
			return
		}
		c := r.open
		r.calls++
		c.ID, c.began = fmt.Sprint(r.calls), time.Now()
		c.hidden = r.who == agent && w.record == partly && w.dice.IntN(2) == 0
		w.note("%s begins %s %s %s", r.who, c.Name, c.Command, c.Input)
		if r.hearer != nil && !c.hidden {
			r.hearer.Tell(&event.Event{Kind: event.ToolCall, Call: &c.Call})
			if c.asks {
				r.hearer.Tell(&event.Event{Kind: event.Question, Ask: &event.Ask{ID: "q" + c.ID, Tool: &c.Call}})
			}
		}
		if c.asks || w.dice.IntN(2) == 0 {
			return // others act before it does
		}
	}
	c := r.open
	failed := false
	if !c.acted {
		if c.acted = true; c.act != nil {
			failed = !c.act()
		}
		if w.dice.IntN(3) == 0 {
			w.finish(r, failed) // others act before it is over
			return
		}
	}
	w.finish(r, failed)
}

func (w *world) finish(r *running, failed bool) {
	c := r.open
	r.open = nil
	w.note("%s ends %s, failed %v", r.who, c.ID, failed)
	// What others may have written during a long call explains nothing. A call is long only on a busy machine.
	took := time.Since(c.began)
	slow := took > 2*time.Second || took > time.Second && c.Kind == event.Shell
	for _, name := range c.paths {
		w.vague[name] = w.vague[name] || r.who == agent && slow
	}
	for _, name := range c.paths { // of several calls the shim knows only what edits make of the whole
		before, is := w.calls[name], c.Name+c.Command
		if w.shim && r.who == agent && before != "" && (c.Kind == event.Shell || before != is) {
			w.vague[name] = true
		}
		w.calls[name] = is
	}
	switch {
	case c.hidden:
	case r.hearer == nil && !c.asks:
		d := event.FinishedCall{Call: c.Call, Began: c.began, Ended: time.Now(), Failed: failed}
		if c.swap != nil {
			d.Input = c.swap
		}
		r.done = append(r.done, d)
	case r.hearer == nil:
	case c.asks && w.dice.IntN(2) == 0:
		r.hearer.Tell(&event.Event{Kind: event.Ended, End: &event.End{}})
	default:
		result := &event.Result{ID: c.ID, Failed: failed, Input: c.swap}
		r.hearer.Tell(&event.Event{Kind: event.ToolResult, Result: result})
	}
}

// look returns what is there: the contents of files with their modes, and directories.
func (w *world) look() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(w.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || path == w.dir {
			return err
		}
		name, _ := filepath.Rel(w.dir, path)
		if d.IsDir() {
			all[name+"/"] = ""
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[name] = fmt.Sprintf("%v\n%s", info.Mode(), text)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// foreign returns the lines of others in a content.
func foreign(text string) string {
	var b bytes.Buffer
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, person) || strings.HasPrefix(line, second) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// check takes the turn of the agent back.
func (w *world) check() {
	w.t.Helper()
	left := w.look()
	out, err := w.store.Undo(w.t.Context(), undo.Request{Dir: w.dir, ID: w.runs[agent].id})
	is := w.look()
	wrong := func(name, why string) {
		w.t.Helper()
		w.t.Errorf("seed %d, shim %v, record %d: %s: %s\nwas %q\nleft %q\nis %q\n%v %+v\n%s", w.seed, w.shim, w.record,
			name, why, w.was[name], left[name], is[name], err, out.NotRestored, strings.Join(w.history, "\n"))
	}
	for _, name := range slices.Sorted(maps.Keys(w.by)) {
		before, there := left[name]
		after, still := is[name]
		same := before == after && there == still
		dir := strings.HasSuffix(name, "/")
		switch who := w.last[name]; {
		case dir && (w.shim || strings.Contains(strings.Join(slices.Collect(maps.Keys(is)), "\n"), name)):
		case !same && w.shim && !there && strings.Contains(w.calls[name], "rm"): // no time tells who removed a file
		case !same && !w.by[name][agent]:
			wrong(name, "the turn did not write it")
		case !same && who != agent:
			wrong(name, "another changed it last")
		case foreign(before) != foreign(after) && !strings.Contains(foreign(after), foreign(before)):
			wrong(name, "lines of others are lost")
		case w.record == honest && len(w.by[name]) == 1 && who == agent && !w.vague[name]:
			if was, once := w.was[name]; was != after || once != still {
				wrong(name, "it is not taken back")
			}
		}
		delete(left, name)
	}
	for name, text := range left {
		if is[name] != text {
			wrong(name, "it was not changed before")
		}
	}
}
