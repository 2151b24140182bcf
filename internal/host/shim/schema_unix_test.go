//go:build unix

package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

const needsN = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

func TestConforming(t *testing.T) {
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	deeper := strings.Repeat("[", 9000) + strings.Repeat("]", 9000)
	tooDeep := strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001)
	tree := `{"$defs":{"t":{"type":"array","items":{"$ref":"#/$defs/t"}}},"$ref":"#/$defs/t"}`
	tests := []struct {
		name, schema, answer string
		want                 string // the line; or ! and a part of the error
	}{
		{"plain", needsN, "{\"n\": 1}\n", `{"n":1}`},
		{"in a fence", needsN, "Here:\n```json\n{\"n\":\n 1}\n```\nDone.", `{"n":1}`},
		{"in a fence without a name", needsN, "```\n{\"n\":1}\n```", `{"n":1}`},
		{"in the second fence", needsN, "```sh\nls {}\n```\nthen\n```json\n{\"n\":2}\n```", `{"n":2}`},
		{
			"the first that fits", needsN,
			"```json\n{\"n\":\"x\"}\n```\n```json\n{\"n\":2}\n```\n```json\n{\"n\":3}\n```",
			`{"n":2}`,
		},
		{"in a sentence", needsN, `The answer is {"n":1}, I think.`, `{"n":1}`},
		{"two in sentences", needsN, `Either {"n":1} or {"n":2}.`, "!there is no JSON"},
		{"a fence without an end", needsN, "```json\n{\"n\":1}", `{"n":1}`},
		{"no JSON", needsN, "I cannot.", "!there is no JSON"},
		{"nothing", needsN, "", "!there is no JSON"},
		{"wrong", needsN, `{"n":"1"}`, "!integer"},
		{"missing", needsN, `{}`, "!n"},
		{"torn", needsN, `{"n":1`, "!there is no JSON"},
		{"single quotes", needsN, `{'n':1}`, "!there is no JSON"},
		{
			"invalid UTF-8 is replaced by readers, so it may stand", `{"type":"object"}`, "{\"a\":\"\xff\"}",
			"{\"a\":\"\xff\"}",
		},
		{"a list", `{"type":"array"}`, `[1, {"n":1}]`, `[1,{"n":1}]`},
		{"a list in a sentence", `{"type":"array","items":{"type":"integer"}}`, `It is [1,2].`, `[1,2]`},
		{"a number", `{"type":"number"}`, " 42\n", "42"},
		{"a string", `{"type":"string"}`, `"x"`, `"x"`},
		{"null", `{"type":"null"}`, `null`, "null"},
		{"true", `{}`, `true`, "true"},
		{"a string in a fence", `{"type":"string"}`, "```\n\"x\"\n```", `"x"`},
		{"digits stay", needsN, `{"n":9007199254740993}`, `{"n":9007199254740993}`},
		{
			"many digits stay", `{"type":"number"}`, `123456789012345678901234567890.5`,
			`123456789012345678901234567890.5`,
		},
		{"a fraction", `{"items":{"multipleOf":0.01}}`, `[0.07,19.99]`, `[0.07,19.99]`},
		{"no such fraction", `{"items":{"multipleOf":0.01}}`, `[0.075]`, "!multipleOf"},
		{"a number that is out of range", `{"type":"number"}`, `1e999999999`, "!1e999999999"},
		{"a key twice", needsN, `{"n":"x","n":1}`, `!"n" stands twice`},
		{"a key twice, inside", `{}`, `[{"a":{"b":1,"c":[{}],"\u0062":2}}]`, `!"b" stands twice`},
		{"a key in several objects", `{}`, `[{"a":1},{"a":{"a":[{"a":2}]}}]`, `[{"a":1},{"a":{"a":[{"a":2}]}}]`},
		{"a value like a key", `{}`, `{"a":"b","b":"a"}`, `{"a":"b","b":"a"}`},
		{"deep", tree, deep, deep},
		{"deeper", tree, deeper, "!nested too deeply"},
		{"too deep", tree, tooDeep, "!there is no JSON"},
		{
			"a reference",
			`{"$defs":{"p":{"type":"integer"}},"properties":{"n":{"$ref":"#/$defs/p"}},"required":["n"]}`,
			`{"n":1.5}`, "!integer",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := newSchema([]byte(tt.schema))
			if err != nil {
				t.Fatal(err)
			}
			line, err := s.conforming(tt.answer)
			if part, bad := strings.CutPrefix(tt.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), part) || line != nil {
					t.Errorf("%.80s, %v", line, err)
				}
			} else if err != nil || string(line) != tt.want {
				t.Errorf("%.80s, %v", line, err)
			}
		})
	}
}

func TestSchemas(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	w.script(`{"n":1}`)
	w.write(filepath.Join(w.work, "good.json"), " \n"+needsN)
	w.write(filepath.Join(w.work, "mark.json"), "\ufeff"+needsN)
	w.write(filepath.Join(w.work, "large.json"), needsN+strings.Repeat(" ", maxSchema))
	w.write(filepath.Join(w.work, "full.json"), needsN+strings.Repeat(" ", maxSchema-len(needsN)))
	if err := syscall.Mkfifo(filepath.Join(w.work, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for schema, want := range map[string]string{
		"good.json": "", "mark.json": "", "full.json": "", needsN: "",
		"large.json": "at most 1 MiB", "pipe": "at most 1 MiB", ".": "at most 1 MiB", "none.json": "cannot be read",
		"":                   "is empty",
		`{"type":"strange"}`: "not a JSON schema",
		`{"properties":{"a":{"items":{"type":["null","x"]}}}}`: "not a JSON schema",
		`{"$ref":"#/$defs/none"}`:                              "not a JSON schema",
		`{"$ref":"https://example.com/x"}`:                     "not a JSON schema",
		`{"$ref":"good.json"}`:                                 "not a JSON schema", `{"pattern":"("}`: "not a JSON schema",
		`{} {}`:    "not a JSON schema",
		`{"type":`: "not a JSON schema", `[]`: "not a JSON schema",
		`{"minLength":"x"}`: "not a JSON schema",
	} {
		r := w.run(nil, "--agent", "alpha", "-p", "q", "--output-schema="+schema)
		if want == "" && (r.code != 0 || r.stdout != "{\"n\":1}\n") || want != "" &&
			(r.code != 2 || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, "\nhint: ")) {
			t.Errorf("%.60s: %+v", schema, r)
		}
	}
}

// TestRetries: the prompt comes again whole, with what was wrong, until an answer fits or nobody is left to ask.
func TestRetries(t *testing.T) {
	prompt := "the question " + strings.Repeat("long ", 30_000)
	for _, way := range []string{"pipe", "file"} {
		w := newWorld(t)
		var seen []agent.Spec
		w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.seen, d.files = &seen, true })}
		w.script("no", `{"n":"x"}`, "```\n{\"n\":3}\n```")
		stdin := w.pipe([]byte(prompt))
		if way == "file" {
			stdin = w.file([]byte(prompt))
		}
		r := w.run(stdin, "--agent", "alpha", "--output-schema", needsN)
		prompts := w.prompts()
		if r.code != 0 || r.stdout != "{\"n\":3}\n" || len(prompts) != 3 ||
			strings.Count(r.stderr, "asking again") != 2 {
			t.Fatalf("%+v, %d prompts", r, len(prompts))
		}
		for i, p := range prompts {
			extra, ok := strings.CutPrefix(p, prompt)
			if !ok || !strings.Contains(extra, needsN) || strings.Contains(extra, "was not valid") != (i > 0) {
				t.Errorf("prompt %d ends with %q", i, extra)
			}
		}
		if !strings.Contains(prompts[1], "\nno\n") || !strings.Contains(prompts[2], `{"n":"x"}`) ||
			strings.Contains(prompts[2], "\nno\n") {
			t.Error("the wrong answer is not repeated")
		}
		if len(seen) != 3 || seen[0].Fresh == seen[1].Fresh || seen[1].Fresh == seen[2].Fresh ||
			seen[0].Shared.Output.Value != setting.Text || string(seen[0].Schema) != needsN {
			t.Errorf("%+v", seen)
		}
	}
}

func TestRetriesRunOut(t *testing.T) {
	for retries, starts := range map[string]int{"0": 1, "1": 2, "": 3} {
		w := newWorld(t)
		w.drivers = []agent.Driver{w.agent("alpha", nil)}
		w.script("no")
		args := []string{"--agent", "alpha", "-p", "q", "--output-schema", needsN, "--report", "r.json"}
		if retries != "" {
			args = append(args, "--output-schema-retries", retries)
		}
		r := w.run(nil, args...)
		var report Report
		data, _ := os.ReadFile(filepath.Join(w.work, "r.json"))
		if err := json.Unmarshal(data, &report); err != nil || r.code != 1 || r.stdout != "" ||
			len(w.prompts()) != starts || report.Attempts != starts || report.Error == nil ||
			report.Error.Code != "SCHEMA_UNMET" || strings.Contains(r.stderr, "It is shut") {
			t.Errorf("%q: %+v, %s", retries, r, data)
		}
	}
}

// TestStreamOfAnswers: the last whole message counts, and what the agent itself held to the schema counts more.
func TestStreamOfAnswers(t *testing.T) {
	for stream, want := range map[string]string{
		`{"text":"{\"n\":1}"}` + "\n" + `{"text":"{\"n\":2}"}` + "\n" + `{"final":""}`: `{"n":2}`,
		`{"text":"{\"n\":1}"}` + "\n" + `{"final":"{\"n\":5}"}`:                        `{"n":5}`,
		`{"final":"words","structured":{"n": 7}}`:                                      `{"n":7}`,
	} {
		w := newWorld(t)
		var seen []agent.Spec
		w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.stream, d.native, d.seen = true, true, &seen })}
		w.script(stream)
		r := w.run(nil, "--agent", "alpha", "-p", "q", "--output-schema", needsN)
		if r.code != 0 || r.stdout != want+"\n" || seen[0].Shared.Output.Value != setting.StreamJSON ||
			!slices.Equal(w.prompts(), []string{"q"}) {
			t.Errorf("%s: %+v, %q", stream, r, w.prompts())
		}
	}
}

// TestInstructionBeyondTheLimit: what we add to a prompt counts too, so that no agent cuts it.
func TestInstructionBeyondTheLimit(t *testing.T) {
	extra := int64(len(instruction([]byte(needsN))))
	for most, code := range map[int64]int{2 + extra: 0, 1 + extra: 2} {
		for _, limit := range []agent.Limit{{Characters: most}, {Bytes: most}} {
			w := newWorld(t)
			w.script(`{"n":1}`)
			w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.limit = limit })}
			if r := w.run(nil, "--agent", "alpha", "-p", "qq", "--output-schema", needsN); r.code != code ||
				len(w.prompts()) != 1-code/2 {
				t.Errorf("%+v: %+v", limit, r)
			}
		}
	}
}

// TestEndless: a schema that comes back to itself without a step into the value would end the process.
func TestEndless(t *testing.T) {
	const draft7 = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for schema, endless := range map[string]bool{
		`{"$ref":"#"}`:                                                   true,
		`{"allOf":[{},{"$ref":"#"}]}`:                                    true,
		`{"anyOf":[{"type":"null"},{"$ref":"#"}]}`:                       true,
		`{"oneOf":[{"$ref":"#"}]}`:                                       true,
		`{"not":{"$ref":"#"}}`:                                           true,
		`{"if":{"$ref":"#"}}`:                                            true,
		`{"if":{},"then":{"$ref":"#"}}`:                                  true,
		`{"if":false,"else":{"$ref":"#"}}`:                               true,
		`{"dependentSchemas":{"n":{"$ref":"#"}}}`:                        true,
		`{` + draft7 + `"dependencies":{"n":{"$ref":"#"}}}`:              true,
		`{` + draft7 + `"definitions":{"a":{"$ref":"#/definitions/a"}}}`: true,
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"$ref":"#/$defs/a"}`: true,
		`{"$defs":{"a":{"$ref":"#/$defs/a"}},"properties":{"n":{"$ref":"#/$defs/a"}}}`:                 true,
		`{"properties":{"n":{"$ref":"#/properties/n"}}}`:                                               true,
		`{"items":{"anyOf":[{"$ref":"#/items"}]}}`:                                                     true,
		`{"$anchor":"a","$ref":"#a"}`:                                                                  true,
		`{"$dynamicAnchor":"a","$dynamicRef":"#a"}`:                                                    true,
		`{"$id":"https://example.com/a","$defs":{"b":{"$id":"b","$ref":"a"}},"$ref":"b"}`:              true,
		`{"$REF":"#"}`:            true, // the library reads keywords in any case
		`{"enum":[{"$ref":"#"}]}`: false,
		`{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}},"required":["left"]}`: false,
		`{"items":{"$ref":"#"}}`: false,
		`{"prefixItems":[{"$ref":"#"}],"contains":{"$ref":"#"},"unevaluatedItems":{"$ref":"#"}}`:                    false,
		`{"additionalProperties":{"$ref":"#"},"patternProperties":{"^n":{"$ref":"#"}}}`:                             false,
		`{"propertyNames":{"$ref":"#"},"unevaluatedProperties":{"$ref":"#"}}`:                                       false,
		`{"anyOf":[{"type":"null"},{"properties":{"next":{"$ref":"#"}}}]}`:                                          false,
		`{"$defs":{"t":{"type":"object","properties":{"kids":{"items":{"$ref":"#/$defs/t"}}}}},"$ref":"#/$defs/t"}`: false,
		`{"$defs":{"s":{}},"allOf":[{"$ref":"#/$defs/s"},{"$ref":"#/$defs/s"}],"$ref":"#/$defs/s"}`:                 false,
		`{"$dynamicAnchor":"a","properties":{"n":{"$dynamicRef":"#a"}}}`:                                            false,
		`{"$id":"https://example.com/a","$defs":{"b":{"$id":"b","properties":{"n":{"$ref":"a"}}}},"$ref":"b"}`:      false,
	} {
		s, err := newSchema([]byte(schema))
		if (err != nil) != endless || endless && !strings.Contains(err.Error(), "refers to itself") {
			t.Errorf("%s: %v", schema, err)
		}
		if s != nil {
			for _, value := range []string{`{"n":{"n":1},"next":{"next":null},"kids":[{}]}`, `[[],[[]]]`, `"x"`} {
				_ = s.check([]byte(value)) // it comes back
			}
		}
	}
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	if r := w.run(nil, "--agent", "alpha", "-p", "q", "--output-schema", `{"$ref":"#"}`); r.code != 2 ||
		len(w.prompts()) != 0 || !strings.Contains(r.stderr, "\nhint: ") {
		t.Errorf("%+v", r)
	}
}

// byArgument is an agent that gets its prompt as its last argument. It says no.
type byArgument struct{ fake }

func (d byArgument) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	l, warnings, err := d.fake.Command(s)
	l.Prompt, l.PromptAt = agent.ByArgument, len(l.Args)
	return l, warnings, err
}

// TestRepairWithinTheLimit: what an agent can take decides how much it is told of its mistake, and never how the call
// ends.
func TestRepairWithinTheLimit(t *testing.T) {
	s, err := newSchema([]byte(needsN))
	if err != nil {
		t.Fatal(err)
	}
	answer := `{"m":"` + strings.Repeat("é", 100) + `"}`
	_, wrong := s.conforming(answer)
	list := repairs([]byte(needsN), true, answer, wrong)
	for i, longer := range list[1:] {
		if len(longer) >= len(list[i]) {
			t.Errorf("%d is not shorter than the one before: %q", i+1, longer)
		}
	}
	const question = "the question"
	for i, extra := range list {
		for _, native := range []bool{false, true} {
			if i >= 3 && !native {
				continue
			}
			for _, short := range []int{0, 1} {
				text := question + extra
				limit := agent.Limit{Characters: int64(len([]rune(text)) - short)}
				if native {
					limit = agent.Limit{Bytes: int64(len(text) - short)}
				}
				want := i + short
				last := want == len(list) || !native && want == 3
				w := newWorld(t)
				w.script(answer, `{"n":1}`)
				w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.limit, d.native = limit, native })}
				r := w.run(w.file([]byte(question)), "--agent", "alpha", "--output-schema", needsN, "--report",
					"r.json")
				prompts := w.prompts()
				var report Report
				data, _ := os.ReadFile(filepath.Join(w.work, "r.json"))
				_ = json.Unmarshal(data, &report)
				if last {
					if r.code != 1 || len(prompts) != 1 || report.Error == nil || report.Error.Code != "SCHEMA_UNMET" ||
						report.Attempts != 1 || report.AgentExit == nil || report.ExitCode != 1 ||
						!strings.Contains(r.stderr, "\nhint: ") {
						t.Errorf("%d, native %v, %+v: %+v, %s", i, native, limit, r, data)
					}
				} else if r.code != 0 || len(prompts) != 2 || prompts[1] != question+list[want] ||
					report.Attempts != 2 {
					t.Errorf("%d, native %v, %+v: %+v, %q", i, native, limit, r, prompts)
				}
			}
		}
	}
}

// TestRepairInAnArgument: a file is not counted to its end where the agent has no limit, but an argument has one.
func TestRepairInAnArgument(t *testing.T) {
	w := newWorld(t)
	starts := filepath.Join(w.dir, "starts")
	w.drivers = []agent.Driver{byArgument{w.shell("echo start >>"+starts+"; echo no", nil)}}
	question := strings.Repeat("x", longestArgument-len(instruction([]byte(needsN)))-10)
	r := w.run(w.file([]byte(question)), "--agent", "alpha", "--output-schema", needsN, "--report", "r.json")
	if count, _ := os.ReadFile(starts); r.code != 1 || string(count) != "start\n" || w.reported() != "alpha" ||
		!strings.Contains(r.stderr, "cannot be asked again") {
		t.Errorf("%s, %+v", count, r)
	}
}

// TestNoSecondPlace: once the agent has run, what keeps us from asking again is an end with a report.
func TestNoSecondPlace(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.shell("rm -r "+w.temp+"; echo no", func(d *fake) { d.files = true })}
	r := w.run(nil, "--agent", "alpha", "-p", "q", "--output-schema", needsN, "--report", "r.json")
	if r.code != 1 || w.reported() != "alpha" || !strings.Contains(r.stderr, "cannot be asked again") ||
		!strings.Contains(r.stderr, "\nhint: set TMPDIR") {
		t.Errorf("%+v", r)
	}
}
