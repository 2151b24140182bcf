package modelserver

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"
)

// fuzz reads a body, and lets a script with one step of each kind answer it, as a stream and whole.
func fuzz(f *testing.F, w Wire, recordings ...string) {
	for _, stream := range []bool{true, false} {
		_, text := body(w, stream)
		f.Add([]byte(text))
	}
	for _, name := range recordings {
		for _, r := range recorded(f, name) {
			f.Add([]byte(r.Raw))
		}
	}
	f.Add([]byte(
		`{"tools":[{"name":"Bash","function":{"name":"Bash"},"input_schema":{"properties":{"command":null}}}],"messages":[{"content":[{}]}],"input":[{}],"contents":[{"parts":[{}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := w.parse(data, target{wire: w, model: "m", stream: len(data)%2 == 0, array: len(data)%3 == 0})
		if err != nil {
			return
		}
		r.Wire, r.Raw = w, data
		for _, text := range []string{
			`[{"calls":[{"shell":"a"},{"write":{"path":"a","content":"b"}},{"read":"a"},{"web":"a"},{"search":"a"},{"ask":"a"},{"call":{"name":"a"}}]}]`,
			`{"toolless":true,"steps":[{"think":"a"},{"json":{"a":1}}]}`, `[]`,
		} {
			s, err := ParseScript([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			o := Options{name: randomName, now: time.Now}
			a := &answer{
				ctx: context.Background(), w: httptest.NewRecorder(), r: r, enc: w.encoder(r, o), name: randomName,
			}
			if err := s.Answer(context.Background(), r, a); err != nil {
				t.Fatal(err)
			}
			if err := a.finish(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func FuzzMessages(f *testing.F)  { fuzz(f, Messages, "claude", "copilot-messages") }
func FuzzResponses(f *testing.F) { fuzz(f, Responses, "codex", "codex-m", "copilot-responses") }
func FuzzChat(f *testing.F)      { fuzz(f, Chat, "copilot", "opencode") }
func FuzzGemini(f *testing.F)    { fuzz(f, Gemini, "gemini") }

func FuzzScript(f *testing.F) {
	f.Add([]byte(rehearsal))
	f.Add([]byte(
		`{"steps":[{"error":429,"retry_after":1,"times":2},{"calls":[{"shell":"x"}],"cut":{"bytes":3},"slow":"1ms","usage":{"input":1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := ParseScript(data)
		if err != nil {
			return
		}
		for _, turns := range []string{"u", "ucr", ""} {
			_ = s.Answer(context.Background(), talk(turns), &notes{})
		}
	})
}
