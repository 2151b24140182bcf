package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/workspace"
)

func TestSessionComesBackAsItWas(t *testing.T) {
	s := store(t)
	own := create(t, s, "")
	id := own.ID()
	if !strings.HasPrefix(id, "sess-") || len(id) != 13 {
		t.Errorf("the id %q", id)
	}
	add(t, own, user("\n  Say \x1b[31mhello\x1b[0m,  please\nand more"))
	add(t, own, assistant("hm", "c1"))
	add(t, own, Denied{Tool: "Bash", Call: "c1", Reason: "no"})
	add(t, own, result("c1", "not allowed"))
	add(t, own, Todos{Items: []Todo{{Content: "a", Status: "pending"}}})
	add(t, own, Changed{Model: "m2", Mode: "deny"})
	add(t, own, assistant("done"))
	e := end()
	*e.Ended().Usage.CostUSD, e.Ended().Usage.Output = 2, 100 // a sub-agent took some
	add(t, own, e)
	add(t, own, user("again"))
	was, messages := own.State(), own.Messages()
	check(t, own.Close())
	if _, err := own.Append(user("late")); err == nil {
		t.Error("a closed session took a record")
	}
	own = resume(t, s, id)
	is := own.State()
	if !reflect.DeepEqual(was, is) {
		t.Errorf("\n was %+v\n is  %+v", was, is)
	}
	if !reflect.DeepEqual(messages, own.Messages()) {
		t.Errorf("\n was %s\n is  %s", said(messages), said(own.Messages()))
	}
	if is.Title != "Say hello, please" || is.Model != "m2" || is.Mode != "deny" || is.Begin.Model != "m1" ||
		is.Calls != 1 || is.Denials != 1 ||
		is.Messages != 5 || is.Turns != 1 || is.Cost != 2 || is.Usage.Output != 100 || len(is.Todos) != 1 {
		t.Errorf("%+v", is)
	}
}

func TestCompactionShortensWhatTheModelSees(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	add(t, own, assistant("two", "c1"))
	last := add(t, own, result("c1", "three"))
	kept := add(t, own, assistant("four"))
	if _, err := own.Append(Compacted{Summary: user("sum").Message, Keep: 99}); err == nil {
		t.Error("kept what is not there")
	}
	if _, err := own.Append(Compacted{Summary: user("sum").Message, Keep: 1}); err == nil {
		t.Error("kept a line that is not a message")
	}
	add(t, own, Compacted{Summary: user("sum").Message, Keep: last, Trigger: "auto", Before: 1000})
	want := "u sum | a four" // the result lost its call
	if got := said(own.Messages()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	add(t, own, user("five"))
	add(t, own, Compacted{Summary: user("sum2").Message, Keep: kept, Trigger: "manual"})
	want = "u sum2 | a four | u five"
	for range 2 {
		if got := said(own.Messages()); got != want || own.State().Compactions != 2 || own.State().Messages != 5 {
			t.Errorf("got %s, want %s, %+v", got, want, own.State().Total)
		}
		check(t, own.Close())
		own = resume(t, s, "x")
	}
	add(t, own, Compacted{Summary: user("sum3").Message})
	if got := said(own.Messages()); got != "u sum3" {
		t.Errorf("got %s", got)
	}
	check(t, own.Close())
	// Appended before the messages were decoded.
	own = resume(t, s, "x")
	add(t, own, assistant("six"))
	if got := said(own.Messages()); got != "u sum3 | a six" {
		t.Errorf("got %s", got)
	}
}

func TestRewindLeavesABranch(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	one := add(t, own, user("one"))
	add(t, own, assistant("two", "c1"))
	add(t, own, Todos{Items: []Todo{{Content: "a"}}})
	add(t, own, end())
	_, err := own.Append(Begin{})
	if err == nil {
		t.Error("it began twice")
	}
	wantCode(t, own.Rewind(77), fault.NotFoundCode)
	check(t, own.Rewind(one))
	for range 2 {
		state := own.State()
		if got := said(own.Messages()); got != "u one" || state.Messages != 1 || len(state.Todos) != 0 ||
			state.Calls != 1 || state.Cost != 0.25 {
			t.Errorf("got %s %+v", got, state)
		}
		check(t, own.Close())
		own = resume(t, s, "x")
	}
	add(t, own, assistant("three"))
	if got := said(own.Messages()); got != "u one | a three" {
		t.Errorf("got %s", got)
	}
}

func TestForkTakesThePastAlong(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	one := add(t, own, user("one"))
	add(t, own, assistant("left"))
	check(t, own.Rewind(one))
	head := add(t, own, assistant("two"))
	forked, err := s.Fork(t.Context(), "x", "y")
	check(t, err)
	add(t, forked, user("in y"))
	add(t, own, user("in x"))
	if got := said(forked.Messages()); got != "u one | a two | u in y" {
		t.Errorf("got %s", got)
	}
	state := forked.State()
	if state.Begin.ID != "y" || state.Begin.Forked == nil || *state.Begin.Forked != (Origin{"x", head}) ||
		state.Begin.Cwd != "/w" {
		t.Errorf("%+v", state.Begin)
	}
	if data, _ := os.ReadFile(s.file("y", journalEnding)); bytes.Contains(data, []byte("left")) {
		t.Error("the branch that was left came along")
	}
	_, err = s.Fork(t.Context(), "x", "y")
	wantCode(t, err, fault.AlreadyExists)
	_, err = s.Fork(t.Context(), "none", "")
	wantCode(t, err, fault.NotFoundCode)
	check(t, forked.Close())
	check(t, own.Close())
	check(t, s.Delete(t.Context(), "x"))
	_ = resume(t, s, "y")
}

func TestProviders(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	check(t, own.CheckProvider("gemini"))
	f := wantCode(t, own.CheckProvider("openai"), fault.ArgError)
	if !strings.Contains(f.Suggestion, "--history-file") {
		t.Errorf("%s", f.Suggestion)
	}
	check(t, own.Adopt(Adopted{From: "f", Provider: "openai", Model: "gpt"},
		[]model.Message{user("foreign").Message, assistant("answer").Message}))
	for range 2 {
		if got := said(own.Messages()); got != "u foreign | a answer" || own.State().Compactions != 0 {
			t.Errorf("got %s", got)
		}
		check(t, own.CheckProvider("openai"))
		check(t, own.Close())
		own = resume(t, s, "x")
	}
}

func TestNamesThatAreNoIDs(t *testing.T) {
	s := store(t)
	for _, id := range []string{"..", ".a", "a/b", `a\b`, "a b", "ä", strings.Repeat("a", 129), "a\x00"} {
		_, err := s.Create(t.Context(), Begin{ID: id})
		wantCode(t, err, fault.ArgError)
		_, err = s.Resume(t.Context(), id)
		wantCode(t, err, fault.ArgError)
		_, err = s.Show(id)
		wantCode(t, err, fault.ArgError)
		_, err = s.Fork(t.Context(), "a", "../"+id)
		wantCode(t, err, fault.ArgError)
		wantCode(t, s.Delete(t.Context(), id), fault.ArgError)
	}
	if _, err := s.Resume(t.Context(), ""); !errors.Is(err, fault.ArgError) {
		t.Error(err)
	}
	check(t, CheckID("6f1c2a34-aaaa-4bbb-8ccc-000000000000"))
	check(t, CheckID(strings.Repeat("a", 128)))
}

// TestCreatedAtOnce: who has the lock is named, where there is no session yet.
func TestCreatedAtOnce(t *testing.T) {
	s := store(t)
	check(t, os.MkdirAll(s.dir, 0o700))
	held, err := workspace.Lock(t.Context(), s.file("x", lockEnding), 0)
	check(t, err)
	_, err = s.New(t.Context(), Begin{ID: "x"}, true, t.Logf)
	if f := wantCode(t, err, fault.Conflicting); f.Detail["holder_pid"] != os.Getpid() {
		t.Errorf("%v", f)
	}
	check(t, held.Unlock())
}

func TestWhatIsNotThere(t *testing.T) {
	s := store(t)
	_, err := s.Resume(t.Context(), "gone")
	if f := wantCode(t, err, fault.NotFoundCode); f.Message != "Session not found: gone" {
		t.Error(f.Message)
	}
	_, err = s.Show("gone")
	wantCode(t, err, fault.NotFoundCode)
	wantCode(t, s.Delete(t.Context(), "gone"), fault.NotFoundCode)
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("asking made the store")
	}
	check(t, create(t, s, "x").Close())
	_, err = s.Create(t.Context(), Begin{ID: "x"})
	wantCode(t, err, fault.AlreadyExists)
	check(t, s.Delete(t.Context(), "x"))
	if left, _ := os.ReadDir(s.dir); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("left: %v", left)
	}
	// A history of another program.
	check(t, os.WriteFile(s.file("theirs", projectionEnding), []byte("{}"), 0o600))
	_, err = s.Resume(t.Context(), "theirs")
	if f := wantCode(t, err, fault.NotFoundCode); !strings.Contains(f.Suggestion,
		"--history-file "+s.file("theirs", projectionEnding)) {
		t.Error(f.Suggestion)
	}
	_, err = s.Create(t.Context(), Begin{ID: "theirs"})
	wantCode(t, err, fault.AlreadyExists)
}

func TestFilesAreOursAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes, and links need a right")
	}
	s := store(t)
	own := create(t, s, "x")
	add(t, own, end())
	check(t, own.Close())
	for name, want := range map[string]os.FileMode{"": 0o700, "x.jsonl": 0o600, "x.json": 0o600, "x.lock": 0o600} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		check(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	check(t, os.Rename(s.file("x", journalEnding), elsewhere))
	check(t, os.Symlink(elsewhere, s.file("x", journalEnding)))
	_, err := s.Resume(t.Context(), "x")
	wantCode(t, err, fault.Unsafe)
	_, err = s.Show("x")
	wantCode(t, err, fault.Unsafe)
	if _, skipped, _ := s.List(t.Context(), Filter{}); len(skipped) != 1 {
		t.Errorf("skipped %v", skipped)
	}
	check(t, os.Remove(s.file("x", journalEnding)))
	check(t, os.Rename(elsewhere, s.file("x", journalEnding)))
	check(t, os.Remove(s.file("x", projectionEnding)))
	check(t, os.Symlink(elsewhere, s.file("x", projectionEnding)))
	_, err = s.Resume(t.Context(), "x")
	wantCode(t, err, fault.Unsafe)
	check(t, os.Remove(s.file("x", projectionEnding)))
	own = resume(t, s, "x")
	check(t, os.Symlink(elsewhere, s.file("x", projectionEnding)))
	add(t, own, end())
	wantCode(t, own.Close(), fault.Unsafe)
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a link was followed")
	}
}

func TestRecordsThatAreNoJSON(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	bad := user("bad \xff")
	bad.Blocks = append(bad.Blocks, model.Block{
		Kind: model.Call, ID: "c", Input: []byte("{half"), Opaque: []byte("no"), Wire: "w",
	},
		model.Block{Kind: model.Call, ID: "d", Input: []byte("{\"a\":\n\"\xff\"}")}, model.Block{
			Kind:  model.Result,
			Parts: []model.Block{{Input: []byte("x")}},
		},
		model.Block{Kind: model.Thinking, Opaque: []byte("no")})
	bad.Cost = 1 / zero()
	add(t, own, bad)
	infinite := 1 / zero()
	add(t, own, End{Event: &event.Event{
		Kind: event.Ended, End: &event.End{Usage: &event.Usage{CostUSD: &infinite}},
	}})
	add(t, own, Compacted{Summary: bad.Message})
	if string(bad.Blocks[1].Input) != "{half" {
		t.Error("the caller's block was changed")
	}
	check(t, own.Close())
	v, err := s.Show("x")
	check(t, err)
	defer v.Close()
	n := 0
	for e, err := range v.Entries() {
		check(t, err)
		if m, ok := e.Record.(Message); ok {
			b := m.Blocks
			if b[0].Text != "bad \ufffd" || string(b[1].Input) != "{}" || b[1].Broken != "{half" ||
				b[1].Opaque != nil || string(b[2].Input) != `{"a":"\ufffd"}` {
				t.Errorf("%+v", b)
			}
		}
		n++
	}
	if n != 4 || v.State.Damaged != 0 {
		t.Errorf("%d records, %d damaged", n, v.State.Damaged)
	}
}

func zero() float64 { return 0 }

func TestFilesThatAreNoSessions(t *testing.T) {
	s := store(t)
	check(t, create(t, s, "good").Close())
	for id, text := range map[string]string{"empty": "", "torn": `{"n":1,"p":0,"k":"be`, "garbage": "a\nb\n"} {
		check(t, os.WriteFile(s.file(id, journalEnding), []byte(text), 0o600))
		_, err := s.Resume(t.Context(), id)
		wantCode(t, err, fault.Unsafe)
		_, err = s.Show(id)
		wantCode(t, err, fault.Unsafe)
	}
	check(t, os.Mkdir(s.file("dir", journalEnding), 0o700))
	page, skipped, err := s.List(t.Context(), Filter{})
	check(t, err)
	if len(page) != 1 || len(skipped) != 4 {
		t.Errorf("%v, skipped %v", page, skipped)
	}
	check(t, s.Delete(t.Context(), "garbage"))
}

// TestProjection holds the file against the form that others read.
func TestProjection(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	ask := user("one <b>")
	ask.Blocks = append(ask.Blocks, model.Block{Kind: model.Image, Media: "image/png", Data: []byte{1, 2}})
	add(t, own, ask)
	answer := assistant("two", "c1")
	answer.Blocks = append([]model.Block{{Kind: model.Thinking, Text: "hm", Opaque: []byte(`"sig"`), Wire: "gemini"}},
		answer.Blocks...)
	add(t, own, answer)
	add(t, own, result("c1", "three"))
	add(t, own, assistant("four"))
	add(t, own, end())
	read := func() string {
		data, err := os.ReadFile(s.file("x", projectionEnding))
		check(t, err)
		var any map[string]any
		check(t, json.Unmarshal(data, &any))
		at := any["updated"].(string)
		_, err = time.Parse(time.RFC3339, at)
		check(t, err)
		return strings.ReplaceAll(strings.ReplaceAll(string(data), at, "U"), any["created"].(string), "C")
	}
	want := `{"id":"x","provider":"gemini","model":"m1","cwd":"/w","created":"C","updated":"U","history":[` +
		`{"role":"user","content":"one <b>\n\n[image: image/png, 2 bytes]"},` +
		`{"role":"assistant","content":"two","tool_calls":[{"id":"c1","name":"Read","input":{"file_path":"a.txt"}}]},` +
		`{"role":"tool","content":"three","tool_call_id":"c1"},{"role":"assistant","content":"four"}],` +
		`"usage":{"total_input_tokens":15,"total_output_tokens":3,"total_cost_usd":0.25},"metadata":{"title":"one <b>","compaction_count":0}}` + "\n"
	if got := strings.ReplaceAll(read(), `"created":"U"`, `"created":"C"`); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	add(t, own, user("five"))
	add(t, own, Compacted{Summary: user("sum").Message})
	if strings.Contains(read(), "five") {
		t.Error("it is written in the middle of a turn")
	}
	check(t, own.Close())
	if got := read(); !strings.Contains(got, `"history":[{"role":"user","content":"sum"}]`) ||
		!strings.Contains(got, `"compaction_count":1`) {
		t.Error(got)
	}
	history, err := ReadHistory(s.file("x", projectionEnding))
	check(t, err)
	if got := said(history); got != "u sum" {
		t.Error(got)
	}
}

func TestAFullDiskLeavesTheJournalAsItWas(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	whole := own.file
	reading, err := os.Open(whole.Name()) // which cannot be written
	check(t, err)
	own.file = reading
	before := own.State()
	if _, err := own.Append(user("two")); err == nil {
		t.Fatal("it was written")
	}
	own.file = whole
	check(t, reading.Close())
	if !reflect.DeepEqual(before, own.State()) {
		t.Error("the state is not what it was")
	}
	if n := add(t, own, user("three")); n != 3 || said(own.Messages()) != "u one three" {
		t.Errorf("%d %s", n, said(own.Messages()))
	}
}

func TestWhatComesInIsNotChanged(t *testing.T) {
	room := make([]model.Block, 1, 4)
	room[0] = model.Block{Kind: model.Text, Text: "one"}
	all := consistent([]model.Message{{Role: model.User, Blocks: room}, user("two").Message})
	if said(all) != "u one two" || room[:2][1].Text != "" {
		t.Errorf("%s, and the caller has %q", said(all), room[:2][1].Text)
	}
}

func TestLineHasTheFormThatIsReadFast(t *testing.T) {
	e := Entry{
		Number: 12, Parent: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.FixedZone("", 3600)), Record: user("hi"),
	}
	line, err := e.line()
	check(t, err)
	want := `{"n":12,"p":7,"k":"message","t":"2026-01-02T02:04:05.006Z","c":"29b3d8c5","d":{"role":"user","blocks":[{"kind":"text","text":"hi"}]}}` + "\n"
	if string(line) != want {
		t.Errorf("\n got %s\nwant %s", line, want)
	}
	data := strings.Index(want, `{"role"`)
	for i := range line {
		if h, ok := parseHead(line[:i]); ok != (i >= data) || ok &&
			(h.data != data || h.number != 12 || h.parent != 7 || h.kind != kindMessage || !h.when().Equal(e.Time)) {
			t.Errorf("%d: %v %+v", i, ok, h)
		}
	}
	for k := unknown; k <= kindDenied; k++ {
		if known([]byte(fmt.Sprint(k))) != k {
			t.Errorf("%d is %q, which is not known", k, k)
		}
	}
}

// TestHolesAreCleared by walls that have none, so that they are recorded once.
func TestHolesAreCleared(t *testing.T) {
	own := create(t, store(t), "x")
	whole := Confinement{Sandbox: "workspace-write", Network: "off", Walls: "namespaces", Wanted: "off"}
	holed := whole
	holed.Holes = "one\ntwo"
	for _, c := range []Confinement{holed, whole} {
		add(t, own, Changed{Confinement: c})
		add(t, own, Changed{Title: "a title says nothing of walls"})
		if now := own.State().Confinement; now != c {
			t.Errorf("%+v", now)
		}
	}
}
