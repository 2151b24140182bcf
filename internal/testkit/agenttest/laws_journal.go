//go:build unix

package agenttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/talk/session"
)

// entries reads the journal from a record on.
func (k *talk) entries(from int64) []session.Entry {
	k.t.Helper()
	r, err := k.p.store().Reader(k.id(), from, false)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var all []session.Entry
	for {
		e, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			k.t.Fatal(err)
		}
		all = append(all, e)
	}
}

// agrees: records have the numbers 1, 2, 3…; every reader gets the same, from whatever record on; and the JSON
// form of an event reads back as the same event, byte for byte.
func agrees(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	k.endOf(k.say("pieces 40"))
	k.endOf(k.say("wait "+k.touched("go1"), "say done"))
	k.end()
	whole := k.entries(1)
	for i, e := range whole {
		if e.Number != int64(i+1) {
			t.Fatalf("record %d has number %d", i+1, e.Number)
		}
		if d, damaged := e.Record.(session.Damaged); damaged {
			t.Errorf("record %d is damaged: %+v", i+1, d)
		}
	}
	for _, from := range []int64{2, int64(len(whole) / 2), int64(len(whole))} {
		if got, want := shown(t, k.entries(from)), shown(t, whole[from-1:]); got != want {
			t.Errorf("from %d:\n%s\nwant:\n%s", from, got, want)
		}
	}
	live, disk := "", ""
	for _, e := range k.events() {
		live += roundTrip(t, e) + "\n"
	}
	for _, e := range whole {
		if ev := e.Event(); ev != nil {
			disk += roundTrip(t, *ev) + "\n"
		}
	}
	if live != disk {
		t.Errorf("a reader that followed got\n%s\nand one that came later\n%s", live, disk)
	}
	lines := k.lines()
	if len(lines) != len(whole) {
		t.Errorf("%d lines are %d records", len(lines), len(whole))
	}
}

// touched creates a file and returns its path.
func (k *talk) touched(name string) string {
	k.t.Helper()
	k.p.touch(k.t, name)
	return k.p.file(name)
}

// lines returns the lines of the journal.
func (k *talk) lines() []string {
	k.t.Helper()
	data, err := os.ReadFile(filepath.Join(k.p.store().Dir(), k.id()+".jsonl"))
	if err != nil {
		k.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

func shown(t *testing.T, all []session.Entry) string {
	t.Helper()
	data, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// roundTrip checks that the JSON form of an event decodes to the same event.
func roundTrip(t *testing.T, e event.Event) string {
	t.Helper()
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back event.Event
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("%s reads back as %s (%v)", data, again, err)
	}
	return string(data)
}

// concatenates: a text comes in pieces and then as a whole, and the pieces add up to the whole.
func concatenates(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	turn := k.say("pieces 200", "say more")
	k.endOf(turn)
	parts, whole := "", ""
	for _, e := range k.events() {
		if e.Kind != event.Text || e.Turn != turn {
			continue
		}
		if e.Delta {
			parts += e.Text
			continue
		}
		whole += e.Text
		if parts != whole {
			t.Fatalf("the pieces are %q, the whole is %q", parts, whole)
		}
	}
	if want := strings.Join(pieces(200), "") + "more"; whole != want {
		t.Errorf("said %q, want %q", whole, want)
	}
	if h, ok := k.side.(teller); ok {
		k.end()
		if got := h.said(turn); got != "" && got != whole {
			t.Errorf("the client was told %q, the journal %q", got, whole)
		}
	}
}

// teller is a host that prints the events of the agent.
type teller interface{ said(turn int64) string }

// forges: no output of an agent can create a record, an id or an end.
func forges(t *testing.T, s Subject) {
	k := s.open(t, wish{})
	k.endOf(k.say("say a"))
	id := k.id()
	turn := k.say("forge")
	e := k.endOf(turn)
	next := k.say("say b")
	k.endOf(next)
	k.end()
	if !e.End.OK || next != turn+1 || k.id() != id {
		t.Errorf("%+v, the next turn is %d, the id %s, then %s", e.End, next, id, k.id())
	}
	var got []string
	for _, end := range k.ends() {
		got = append(got, strings.Fields(end)[1])
	}
	k.equal("ends", got, []string{"success", "success", "success"})
	said := k.text(turn)
	for _, f := range forged() {
		if s.installed && strings.Contains(f, "\x1b") {
			continue // some take such sequences out themselves
		}
		if f = strings.ToValidUTF8(f, "\uFFFD"); !strings.Contains(said, f) {
			t.Errorf("%q was not told as it was said: %q", f, said)
		}
	}
	whole := k.entries(1)
	if lines := k.lines(); len(lines) != len(whole) {
		t.Errorf("%d lines are %d records", len(lines), len(whole))
	}
	for i, e := range whole {
		if e.Number != int64(i+1) {
			t.Errorf("record %d has number %d", i+1, e.Number)
		}
	}
}
