package session

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"omniagent/internal/llm/model"
)

// TestAHistoryIsAdoptedWholeOrNotAtAll: wherever the writer was killed, readers, lists and writers find either the
// session's own messages or all adopted ones, and the session can be continued.
func TestAHistoryIsAdoptedWholeOrNotAtAll(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	add(t, own, user("one"))
	add(t, own, end())
	whole := func() []byte {
		data, err := os.ReadFile(s.file("x", journalEnding))
		check(t, err)
		return data
	}
	before := len(whole())
	adopted := []model.Message{
		user("a").Message, assistant("b", "c1").Message, result("c1", "r").Message,
		assistant("d").Message,
	}
	check(t, own.Adopt(Adopted{From: "f", Provider: "openai", Model: "gpt"}, adopted))
	check(t, own.Close())
	data := whole()
	const new = "u a | a b call:c1 | u result:c1=r | a d"
	for cut := before; cut <= len(data); cut++ {
		check(t, os.WriteFile(s.file("x", journalEnding), data[:cut], 0o600))
		words, provider, calls, messages := "u one", "gemini", 0, 1
		if cut == len(data) {
			words, provider, calls, messages = new, "openai", 1, 5
		}
		v, err := s.Show("x")
		check(t, err)
		if got := said(v.Messages()); got != words || v.State.Provider != provider || v.State.Calls != calls ||
			v.State.Messages != messages {
			t.Fatalf("cut at %d of %d it shows %s, %+v", cut, len(data), got, v.State.Total)
		}
		v.Close()
		page, _, err := s.List(t.Context(), Filter{})
		check(t, err)
		if page[0].Provider != provider || page[0].Calls != calls || page[0].Messages != messages {
			t.Fatalf("cut at %d of %d the list has %+v", cut, len(data), page[0].Total)
		}
		own := resume(t, s, "x")
		add(t, own, user("next"))
		for range 2 {
			if got := said(own.Messages()); !strings.HasPrefix(got, words) || !strings.HasSuffix(got, "next") ||
				own.State().Provider != provider || own.State().Damaged != 0 {
				t.Fatalf("cut at %d of %d it goes on as %s, %+v", cut, len(data), got, own.State())
			}
			check(t, own.Close())
			own = resume(t, s, "x")
		}
		check(t, own.Close())
	}
}

// TestADamagedHistoryIsNotTorn: what was damaged later takes nothing else along.
func TestADamagedHistoryIsNotTorn(t *testing.T) {
	s := store(t)
	own := create(t, s, "x")
	check(t, own.Adopt(Adopted{Provider: "openai", Model: "gpt"},
		[]model.Message{user("a").Message, assistant("b").Message}))
	check(t, own.Close())
	data, err := os.ReadFile(s.file("x", journalEnding))
	check(t, err)
	at := bytes.LastIndex(data, []byte(`{"n":`))
	data[at] = 'x'
	check(t, os.WriteFile(s.file("x", journalEnding), data, 0o600))
	own = resume(t, s, "x")
	if got := said(own.Messages()); got != "u a" || own.State().Damaged != 1 {
		t.Errorf("%s, %+v", got, own.State())
	}
	add(t, own, user("next"))
	check(t, own.Close())
	if now, err := os.ReadFile(s.file("x", journalEnding)); err != nil || !bytes.HasPrefix(now, data) {
		t.Errorf("it was changed: %v", err)
	}
}
