package start

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenario is one of testdata/golden.json: what an API says, and what the stream has to say then.
type scenario struct {
	ID        string            `json:"id"`
	Provider  string            `json:"provider"`
	Prompt    string            `json:"prompt"`
	Files     map[string]string `json:"files"`
	Responses []reply           `json:"responses"`
	Expected  []any             `json:"expected"`
	Exit      *int              `json:"exit"`
	Args      []string          `json:"args"`
	EnvAbsent []string          `json:"env_absent"`
	Requests  int               `json:"requests"`
	After     struct {
		Absent []string `json:"absent"`
	} `json:"after"`
	Stdin      []string `json:"stdin"`
	StdinAfter string   `json:"stdin_after"`
	Mode       string   `json:"mode"`
}

func TestGolden(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		t.Run(s.ID+"/"+s.Provider, func(t *testing.T) {
			t.Parallel()
			s.play(t)
		})
	}
}

func (s scenario) play(t *testing.T) {
	p := newPlace(t)
	for name, content := range s.Files {
		p.write(t, name, content)
	}
	server := serve(t, s.Responses)
	var env []string
	for name, value := range map[string]string{"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"} {
		if !slices.Contains(s.EnvAbsent, name) && strings.HasPrefix(name, strings.ToUpper(s.Provider)) {
			env = append(env, name+"="+value)
		}
	}
	args := append([]string{"--provider", s.Provider, "--model", "test-model"}, s.Args...)
	if len(s.EnvAbsent) == 0 { // an address on this machine needs no key
		args = append(args, "--api-base", server.URL)
	}
	if s.ID == "tool-error" && !whole(t) {
		t.Log("no walls hold commands on this machine, so the command is allowed by hand")
		args = append(args, "--permission-mode", "auto")
	}
	if s.Mode == "persistent" {
		args = append(args, "--session-id", "golden")
	} else {
		args = append(args, "--prompt", s.Prompt)
	}
	r := p.launch(t, env, args...)
	if s.Mode == "persistent" {
		r.say(fmt.Sprintf(`{"type":"user","content":%q}`, s.Prompt))
	}
	switch {
	case s.StdinAfter != "":
		r.await(func(line string) bool {
			return strings.Contains(line, `"content":"`+strings.TrimPrefix(s.StdinAfter, "text:")+`"`)
		})
	case slices.Contains(s.Expected, any("$WAIT_FOR_STDIN")):
		r.await(func(line string) bool { return strings.Contains(line, `"tool_use"`) })
	}
	for _, frame := range s.Stdin {
		r.say(frame)
	}
	messages, exit := r.end()
	if s.Exit != nil && exit != *s.Exit {
		t.Errorf("exit %d, not %d\n%s", exit, *s.Exit, r.stderr.String())
	}
	s.compare(t, messages, p)
	if s.Requests > 0 && len(server.asked()) != s.Requests {
		t.Errorf("%d requests", len(server.asked()))
	}
	for _, name := range s.After.Absent {
		if _, err := os.Lstat(filepath.Join(p.work, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", strings.Join(r.lines, "\n"), r.stderr.String())
	}
}

// compare walks through what was expected. An entry may have more members than the expectation.
func (s scenario) compare(t *testing.T, messages []map[string]any, p place) {
	t.Helper()
	at := 0
	next := func() map[string]any {
		if at >= len(messages) {
			return nil
		}
		at++
		return messages[at-1]
	}
	for i, want := range s.Expected {
		switch want := want.(type) {
		case string:
			switch want {
			case "$WAIT_FOR_STDIN":
			case "$ANY_MORE":
				following := s.Expected[i+1].(map[string]any)
				for at < len(messages) && messages[at]["type"] != following["type"] {
					at++
				}
			case "$USAGE_ESTIMATED":
				if m := next(); m["type"] != "usage" || m["usage_estimated"] != true {
					t.Errorf("%v is not an estimated usage", m)
				}
			case "$RESULT_OK":
				if m := next(); m["type"] != "result" || m["is_error"] != false || m["subtype"] != "success" {
					t.Errorf("%v is not a good result", m)
				}
			default:
				t.Fatalf("unknown: %s", want)
			}
		case map[string]any:
			m := next()
			if why := differs(want, m, p); why != "" {
				t.Errorf("%v\nis not\n%v: %s", m, want, why)
			}
		}
	}
	if at != len(messages) {
		t.Errorf("more than was expected: %v", messages[at:])
	}
}

// differs says why got is not what was wanted; empty: it is.
func differs(want, got any, p place) string {
	switch want := want.(type) {
	case string:
		word, rest, _ := strings.Cut(want, " ")
		text, isText := got.(string)
		switch {
		case word == "$ANY" && got != nil, word == "$SID" && text != "", word == "$MODEL" &&
			text != "", word == "$MODE" && text != "", word == "$CWD" && text == p.work:
			return ""
		case word == "$CONTAINS" && isText && strings.Contains(text, rest):
			return ""
		case word == "$GT0":
			if n, ok := got.(float64); ok && n > 0 {
				return ""
			}
		case word == "$ESTIMATED":
			if o, ok := got.(map[string]any); ok && o["input_tokens"].(float64) > 0 {
				return ""
			}
		case !strings.HasPrefix(word, "$") && want == text:
			return ""
		}
	case map[string]any:
		o, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%v is not an object", got)
		}
		for name, value := range want {
			if why := differs(value, o[name], p); why != "" {
				return name + ": " + why
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if ok && len(want) == 1 && want[0] == "*" {
			return ""
		}
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%v is another list", got)
		}
		for i := range want {
			if why := differs(want[i], list[i], p); why != "" {
				return why
			}
		}
		return ""
	default:
		if fmt.Sprint(want) == fmt.Sprint(got) {
			return ""
		}
	}
	return fmt.Sprintf("%v is not %v", got, want)
}
