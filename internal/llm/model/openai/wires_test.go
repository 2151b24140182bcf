package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/llm/model/gemini"
	"omniagent/internal/llm/model/openai"
	"omniagent/internal/llm/modelserver"
)

// abstract is a request as it arrived, without what the wires cannot say in the same way: who divides a text, whether a
// result failed, and that results are messages of their own.
func abstract(r modelserver.Request) string {
	var b strings.Builder
	role, texts := "", []string{r.System}
	flush := func() {
		if text := strings.Join(texts, "\n\n"); text != "" {
			fmt.Fprintf(&b, "  %q\n", text)
		}
		texts = nil
	}
	if r.System != "" {
		role = modelserver.System
		b.WriteString("system\n")
	}
	for _, m := range r.Messages {
		if m.Role != role {
			flush()
			role = m.Role
			b.WriteString(role + "\n")
		}
		for _, block := range m.Blocks {
			switch block.Kind {
			case modelserver.Text:
				texts = append(texts, block.Text)
				continue
			case modelserver.Calling:
				flush()
				var input any
				_ = json.Unmarshal(block.Input, &input)
				fmt.Fprintf(&b, "  call %s %s %v\n", block.ID, block.Name, input)
			case modelserver.Result:
				flush()
				fmt.Fprintf(&b, "  result %s %q\n", block.ID, block.Text)
			default:
				flush()
				fmt.Fprintf(&b, "  %s\n", block.Kind)
			}
		}
	}
	flush()
	for _, t := range r.Tools {
		fmt.Fprintf(&b, "tool %s %s %q %s\n", t.Kind, t.Name, t.Description, t.Schema)
	}
	return b.String()
}

func text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

func call(id, name, input string) model.Block {
	return model.Block{Kind: model.Call, ID: id, Name: name, Input: json.RawMessage(input)}
}

func result(id, s string) model.Block { return model.Block{Kind: model.Result, ID: id, Text: s} }

func question() model.Request {
	png := model.Block{Kind: model.Image, Media: "image/png", Data: []byte("png")}
	pdf := model.Block{Kind: model.File, Media: "application/pdf", Name: "a.pdf", Data: []byte("%PDF")}
	return model.Request{
		System: []string{"You help.", "Be brief."},
		Tools: []event.ToolSpec{
			{
				Name: "Read", Description: "reads \"files\"",
				Input: json.RawMessage(
					`{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}`),
			},
			{
				Name: "mcp__x__y", Description: "é",
				Input: json.RawMessage(
					`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}`),
			},
		},
		Messages: []model.Message{
			{Role: model.User, Blocks: []model.Block{
				text("What is on it?"), png, text("And here?"), text("One more."),
				png, pdf,
			}},
			{Role: model.Assistant, Blocks: []model.Block{
				{Kind: model.Thinking, Text: "of another", Opaque: json.RawMessage(`"s"`), Wire: "anthropic"},
				text("I look."), call("toolu_1", "Read", `{"file_path":"a <b>.txt"}`), call("call_gemini_2",
					"mcp__x__y", `{"a":null,"b":[1.50,"\u00e9"]}`),
			}},
			{Role: model.User, Blocks: []model.Block{
				result("toolu_1", "line 1\nline 2"), result("call_gemini_2", "[]"),
				text("[a reminder]"),
			}},
			{Role: model.Assistant, Blocks: []model.Block{call("c3", "Read", `{}`)}},
			{Role: model.User, Blocks: []model.Block{result("c3", "no such file")}},
			{Role: model.Assistant, Blocks: []model.Block{text("It is a cat.")}},
			{Role: model.User, Blocks: []model.Block{text("Thanks.")}},
		},
	}
}

const arrives = `system
  "You help.\n\nBe brief."
user
  "What is on it?"
  image
  "And here?\n\nOne more."
  image
  image
assistant
  "I look."
  call toolu_1 Read map[file_path:a <b>.txt]
  call call_gemini_2 mcp__x__y map[a:<nil> b:[1.5 é]]
user
  result toolu_1 "line 1\nline 2"
  result call_gemini_2 "[]"
  "[a reminder]"
assistant
  call c3 Read map[]
user
  result c3 "no such file"
assistant
  "It is a cat."
user
  "Thanks."
tool function Read "reads \"files\"" {"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"]}
tool function mcp__x__y "é" {"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"additionalProperties":false}
`

func TestAConversationIsTheSameOnEveryWire(t *testing.T) {
	script, err := modelserver.ParseScript(
		[]byte(`[{"say":"one"},{"say":"two"},{"say":"three"},{"say":"You said ${input}"}]`))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(script, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for i, w := range []struct {
		wire   modelserver.Wire
		client model.Client
	}{
		{modelserver.Chat, openai.NewChat(openai.Options{Base: server.URL() + "/v1", Model: "m"})},
		{modelserver.Responses, openai.NewResponses(openai.Options{Base: server.URL() + "/v1", Model: "m"})},
		{modelserver.Messages, anthropic.New(anthropic.Options{Base: server.URL(), Model: "m"})},
		{modelserver.Gemini, gemini.New(gemini.Options{Base: server.URL(), Model: "m"})},
	} {
		a, err := w.client.Ask(t.Context(), question(), nil)
		if err != nil || a.Stop != model.Done || len(a.Blocks) != 1 {
			t.Fatalf("%s: %v %+v", w.wire, err, a)
		}
		r := server.Requests()[i]
		if r.Wire != w.wire || r.Model != "m" || !r.Stream {
			t.Errorf("%s: %s %s %v", w.wire, r.Wire, r.Model, r.Stream)
		}
		want := arrives
		switch w.wire {
		case modelserver.Chat: // servers that only speak that wire take no documents
			want = strings.Replace(want, "  image\nassistant",
				"  \"[The file a.pdf (application/pdf) stood here; it cannot be shown to this model.]\"\nassistant", 1)
		case modelserver.Messages, modelserver.Gemini: // this server joins parts of the instruction with one line break
			want = strings.Replace(want, "help.\\n\\nBe", "help.\\nBe", 1)
		}
		if got := abstract(r); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", w.wire, got, want)
		}
	}
}
