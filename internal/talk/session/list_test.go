package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
)

func listed(page []Info) string {
	var ids []string
	for _, i := range page {
		ids = append(ids, i.Begin.ID)
	}
	return strings.Join(ids, " ")
}

// bytesRead returns how many bytes this process has read so far, or 0 where the system does not say.
func bytesRead(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Log("what is read cannot be seen here: ", err)
		return 0
	}
	var n int64
	_, err = fmt.Sscanf(string(data), "rchar: %d", &n)
	check(t, err)
	return n
}

// TestListReadsLittle: of a large session little is read; the newest come first.
func TestListReadsLittle(t *testing.T) {
	s := store(t)
	check(t, os.MkdirAll(s.dir, 0o700))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 1000 {
		provider, cwd := "gemini", "/w"
		if n%2 == 1 {
			provider, cwd = "openai", "/w/sub"
		}
		if n%10 == 0 {
			cwd = "/wide"
		}
		id := fmt.Sprintf("s%04d", n)
		var file []byte
		for i, r := range []Record{
			Begin{Version: version, ID: id, Provider: provider, Model: "m", Cwd: cwd, Created: at},
			user(strings.Repeat("x", 30_000)),
			End{Total: Total{Title: id, Provider: provider, Messages: 1}},
			user("later"),
		} {
			line, err := Entry{
				Number: int64(i + 1), Parent: int64(i), Time: at.Add(time.Duration(n) * time.Hour), Record: r,
			}.line()
			check(t, err)
			file = append(file, line...)
		}
		check(t, os.WriteFile(s.file(id, journalEnding), file, 0o600))
	}
	long(t, s, "long", longMessages, 40)
	check(t, os.WriteFile(s.file("broken", journalEnding), []byte("no\n"), 0o600))
	before := bytesRead(t)
	page, skipped, err := s.List(t.Context(), Filter{})
	check(t, err)
	large, err := os.Stat(s.file("long", journalEnding))
	check(t, err)
	const small = 32_000 // more than a small session has
	if read := bytesRead(t) - before; read > 1000*small+large.Size()/4 {
		t.Errorf("it read %d bytes, and the large session has %d", read, large.Size())
	}
	if len(page) != 1001 || listed(page[:3]) != "s0999 s0998 s0997" || len(skipped) != 1 ||
		!strings.Contains(skipped[0].Error(), s.file("broken", journalEnding)) {
		t.Errorf("%d sessions, skipped %v", len(page), skipped)
	}
	if i := page[0]; i.Messages != 2 || i.Title != "s0999" || i.Provider != "openai" || i.Size < 30_000 ||
		i.Updated != at.Add(999*time.Hour) {
		t.Errorf("%+v", i)
	}
	for _, row := range []struct {
		filter Filter
		total  int
		first  string
	}{
		{Filter{Provider: "openai"}, 500, "s0999"},
		{Filter{Dir: "/w"}, 901, "s0999"},
		{Filter{Dir: "/w", Limit: 3}, 3, "s0999"},
		{Filter{Dir: "/w/sub", Provider: "gemini"}, 0, ""},
	} {
		page, _, err := s.List(t.Context(), row.filter)
		if check(t, err); len(page) != row.total || listed(page[:min(1, len(page))]) != row.first {
			t.Errorf("%+v: %d sessions", row.filter, len(page))
		}
	}
	if page, _, err := Open(filepath.Join(s.dir, "none")).List(t.Context(), Filter{}); err != nil ||
		len(page) > 0 || page == nil {
		t.Error("a store that is not there is not empty", err)
	}
}

// TestGlanceSeesWhatTheWholeSays: what a list tells is what going over the file does.
func TestGlanceSeesWhatTheWholeSays(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("a title"))
	for _, r := range []Record{
		assistant("a", "c"), result("c", "r"),
		Denied{Tool: "x"},
		end(),
		Changed{Model: "m2"},
		user("b"), assistant("c"),
		Compacted{Summary: user("s").Message},
	} {
		add(t, own, r)
		info, err := s.Info("x")
		check(t, err)
		want := own.State()
		want.Todos = nil
		if got := info.State; fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("after %s\n got %+v\nwant %+v", r.kind(), got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	s := store(t)
	one := create(t, s, "one")
	add(t, one, user("the Title"))
	add(t, one, assistant("Äpfel and \"quoted\\ text\"\nwith lines, and so on "+strings.Repeat("x", 100)))
	add(t, one, Compacted{Summary: user("s").Message})
	add(t, one, end())
	for last := time.Now().UnixMilli(); time.Now().UnixMilli() == last; {
		runtime.Gosched() // the times of records have milliseconds
	}
	two := create(t, s, "two")
	image := user("nothing")
	image.Blocks = append(image.Blocks, model.Block{Kind: model.Image, Data: []byte("needle in an image")})
	image.Blocks = append(image.Blocks, model.Block{Kind: model.Text, Name: "@reminder", Text: "a needle nobody said"})
	add(t, two, image)
	add(t, two, result("c", "ÄPFEL, once more; äpfel"))
	check(t, os.WriteFile(s.file("broken", journalEnding), []byte("no\n"), 0o600))
	later := time.Now().Add(time.Minute) // times on a disk may be coarse
	check(t, os.Chtimes(s.file("two", journalEnding), later, later))
	for wanted, want := range map[string]string{
		"title": "one 1 user the Title",
		"ÄpFeL": "two 1 user ÄPFEL, once more; äpfel,one 1 assistant Äpfel and \"quoted\\ text\" with lines, and so o…",
		`"quoted\ TEXT"` +
			"\n": "one 1 assistant Äpfel and \"quoted\\ text\" with lines, and so on xxxxxxxxxxxxxxxxxx…",
		"nowhere": "", "needle": "", "role": "",
	} {
		hits, skipped, err := s.Search(t.Context(), wanted, Filter{})
		check(t, err)
		var got []string
		for _, h := range hits {
			got = append(got, fmt.Sprintf("%s %d %s %s", h.Begin.ID, h.Found, h.Role, h.Snippet))
		}
		if strings.Join(got, ",") != want || len(skipped) != 1 {
			t.Errorf("%q:\n got %q\nwant %q, skipped %v", wanted, got, want, skipped)
		}
	}
	_, _, err := s.Search(t.Context(), " ", Filter{})
	wantCode(t, err, fault.ArgError)
}

func TestExport(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	first := add(t, own, user("A title"))
	add(t, own, assistant("left"))
	check(t, own.Rewind(first))
	add(t, own, assistant("I look.", "c1"))
	add(t, own, result("c1", "a\n```\nb"))
	add(t, own, Compacted{Summary: user("summary").Message})
	add(t, own, End{Error: "too many", Event: &event.Event{
		Kind: event.Ended, End: &event.End{Reason: event.MaxTurns},
	}})
	check(t, own.Close())
	export := func(form Form) string {
		var b bytes.Buffer
		check(t, s.Export("x", form, &b))
		return b.String()
	}
	lines := strings.Split(strings.TrimSpace(export(JSONL)), "\n")
	if len(lines) != 7 || !strings.Contains(lines[0], `"k":"begin"`) || strings.Contains(export(JSONL), "left") {
		t.Errorf("%q", lines)
	}
	check(t, os.WriteFile(s.file("y", journalEnding), []byte(export(JSONL)), 0o600)) // it is a journal
	if got := said(resume(t, s, "y").Messages()); got != "u summary" {
		t.Error(got)
	}
	var p projection
	check(t, json.Unmarshal([]byte(export(JSON)), &p))
	if len(p.History) != 3 || p.History[0].Content != "A title" {
		t.Errorf("%+v", p)
	}
	want := "# A title\n\n- session: x\n- model: m1 (gemini)\n- directory: /w\n- created: C\n\n## User\n\nA " +
		"title\n\n## Assistant\n\nI look.\n\n**Read**\n\n```\n" +
		"{\n  \"file_path\": \"a.txt\"\n}\n```\n\n**result**\n\n````\na\n```\nb\n````\n\n*(what was said until here " +
		"was put aside for this summary)*\n\n## User\n\nsummary\n" +
		"\n*(the turn ended with error_max_turns: too many)*\n"
	if got := strings.Replace(export(Markdown), own.State().Begin.Created.Format(time.RFC3339), "C", 1); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	wantCode(t, s.Export("x", "pdf", &bytes.Buffer{}), fault.ArgError)
}

// TestExportOfPiecesAfterTheirMessage: the pieces of an answer that come after its message are not exported again.
// Those of an answer that did not end are.
func TestExportOfPiecesAfterTheirMessage(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	logged := func(kind event.Kind, text string) {
		add(t, own, Logged{&event.Event{Kind: kind, Turn: 1, Text: text, Delta: kind == event.Text}})
	}
	m := model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: "piece 1, piece 2"}}}
	logged(event.Text, "piece 1, ")
	add(t, own, Message{Message: m, Turn: 1})
	logged(event.Text, "piece 2")
	logged(event.Answered, "")
	logged(event.Text, "and more")
	check(t, own.Close())
	var b bytes.Buffer
	check(t, s.Export("x", Markdown, &b))
	want := "## Assistant\n\npiece 1, piece 2\n\n## Assistant\n\nand more\n"
	if got := b.String(); !strings.HasSuffix(got, want) || strings.Count(got, "piece 2") > 1 {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestExportOfPiecesWithoutMessage: pieces of an answer without a message are exported, even if an earlier message of
// the turn ends with the same words.
func TestExportOfPiecesWithoutMessage(t *testing.T) {
	for name, row := range map[string]struct {
		role   model.Role
		before bool // the pieces of the message come before it
		after  bool // or after it
	}{
		"the prompt":                 {role: model.User},
		"an answer in pieces before": {role: model.Assistant, before: true},
		"an answer in pieces after":  {role: model.Assistant, after: true},
	} {
		s := store(t)
		own := create(t, s, "x")
		piece := func() {
			add(t, own, Logged{&event.Event{Kind: event.Text, Turn: 1, Text: "yes", Delta: true}})
			add(t, own, Logged{&event.Event{Kind: event.Answered, Turn: 1}})
		}
		if row.before {
			piece()
		}
		words := []model.Block{{Kind: model.Text, Text: "one word: yes"}}
		if row.before {
			words[0].Text = "yes"
		}
		add(t, own, Message{Message: model.Message{Role: row.role, Blocks: words}, Turn: 1})
		if row.after {
			piece()
		}
		piece()
		check(t, own.Close())
		var b bytes.Buffer
		check(t, s.Export("x", Markdown, &b))
		who := map[model.Role]string{model.User: "User", model.Assistant: "Assistant"}[row.role]
		want := "\n\n## " + who + "\n\n" + words[0].Text + "\n\n## Assistant\n\nyes\n"
		if got := b.String(); !strings.HasSuffix(got, want) || strings.Count(got, "\n## ") != 2 {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestExportOfWhatDidNotEnd: what was read of an answer, and a message that no turn began with, are exported.
func TestExportOfWhatDidNotEnd(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	logged := func(turn int64, kind event.Kind, text string) {
		e := &event.Event{Kind: kind, Turn: turn, Text: text, Delta: true}
		if kind == event.Prompted {
			e.Text, e.Delta, e.Blocks = "", false, []event.Block{{Name: event.Reminder, Text: "do it"}, {Text: text}}
		}
		add(t, own, Logged{e})
	}
	ended := func(turn int64) {
		add(t, own, End{Event: &event.Event{Kind: event.Ended, Turn: turn, End: &event.End{
			Reason: event.FailedTurn, Notes: []string{"it died"},
		}}})
	}
	logged(1, event.Prompted, "first")
	m := user("first")
	m.Turn = 1
	add(t, own, m)
	logged(1, event.Text, "piece 1, ")
	logged(1, event.Text, "piece 2")
	logged(2, event.Prompted, "waits")
	ended(1)
	ended(2)
	check(t, own.Close())
	var b bytes.Buffer
	check(t, s.Export("x", Markdown, &b))
	const died = "\n*(the turn ended with error_during_execution: it died)*\n"
	want := "## User\n\nfirst\n\n## Assistant\n\npiece 1, piece 2\n" + died + "\n## User\n\nwaits\n" + died
	if got := b.String(); !strings.HasSuffix(got, want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
