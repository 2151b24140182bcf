package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// questions is a script in which the model asks that many questions at once.
func questions(several bool, n int) string {
	var list []string
	for i := range n {
		list = append(list,
			fmt.Sprintf(
				`{"question":"Which %d?","header":"H%d","multiSelect":%v,"options":[{"label":"red","description":"warm"},`+
					`{"label":"blue","description":"cold"}]}`, i, i, several))
	}
	return `[{"call":{"name":"AskUserQuestion","input":{"questions":[` + strings.Join(list, ",") + `]}}},{"say":"ok"}]`
}

// answered is what the model was told of the answers to its questions.
func (p place) answered(t *testing.T) string {
	t.Helper()
	requests := p.server.Requests()
	var q struct {
		Messages []struct {
			Content []struct {
				Type    string
				Content any
			}
		}
	}
	if err := json.Unmarshal(requests[len(requests)-1].Raw, &q); err != nil {
		t.Fatal(err)
	}
	for _, m := range q.Messages {
		for _, b := range m.Content {
			if b.Type == "tool_result" {
				data, _ := json.Marshal(b.Content)
				return strings.ReplaceAll(string(data), `\u003e`, ">")
			}
		}
	}
	return "no result"
}

// TestForms: questions with answers of their own, as each client can show them. Whatever is not a clear answer is a no.
func TestForms(t *testing.T) {
	t.Parallel()
	forms := object{"elicitation": object{"form": object{}}}
	const form, permission = "elicitation/create", "session/request_permission"
	accept := func(content object) any { return object{"action": "accept", "content": content} }
	choose := func(option string) any { return object{"outcome": object{"outcome": "selected", "optionId": option}} }
	for name, c := range map[string]struct {
		capabilities object
		script       string
		method       string // of the request; empty: there is none
		result       any
		want         []string // nil: a no
	}{
		"one": {
			forms, questions(false, 1), form, accept(object{"question_0": "blue"}),
			[]string{"Which 0?", "-> blue"},
		},
		"two": {
			forms, questions(false, 2), form, accept(object{"question_0": "blue", "question_1": "red"}),
			[]string{`Which 0?\n-> blue`, `Which 1?\n-> red`},
		},
		"several": {
			forms, questions(true, 1), form, accept(object{"question_0": []string{"red", "blue"}}),
			[]string{"-> red, blue"},
		},
		"half":         {forms, questions(false, 2), form, accept(object{"question_0": "blue"}), nil},
		"not offered":  {forms, questions(false, 1), form, accept(object{"question_0": "green"}), nil},
		"declined":     {forms, questions(false, 1), form, object{"action": "decline"}, nil},
		"no form":      {nil, questions(false, 1), permission, choose("choice-1"), []string{"-> blue"}},
		"none of them": {nil, questions(false, 1), permission, choose("deny"), nil},
		"unknown":      {nil, questions(false, 1), permission, choose("choice-7"), nil},
		"cancelled":    {nil, questions(false, 1), permission, object{"outcome": object{"outcome": "cancelled"}}, nil},
		"two, no form": {nil, questions(false, 2), "", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, c.script)
			a := p.launch(t)
			var methods []string
			a.answer = func(method string, _ object) (any, object) {
				a.mu.Lock()
				methods = append(methods, method)
				a.mu.Unlock()
				return c.result, nil
			}
			if got := a.prompt(a.begin(1, p.work, c.capabilities), "go"); got["stopReason"] != "end_turn" {
				t.Error(got)
			}
			if strings.Join(methods, " ") != c.method {
				t.Errorf("asked with %q", methods)
			}
			got := p.answered(t)
			for _, part := range c.want {
				if !strings.Contains(got, part) {
					t.Errorf("the model is told %s", got)
				}
			}
			if c.want == nil && strings.Contains(got, "->") {
				t.Errorf("the model is told %s", got)
			}
			a.end()
		})
	}
}
