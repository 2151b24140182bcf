package acpclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/acp"
)

// InOrder is the check of package order, which imports what imports this package.
var InOrder func([]event.Event) error

// captured is what an agent said to another client, which asked for the same.
func captured(t testing.TB, name string) (out []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/acp", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var l struct {
			Dir string
			Msg json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		if l.Dir == "agent->client" {
			out = append(append(out, l.Msg...), '\n')
		}
	}
	return out
}

// play drives a wire: it says two messages, answers each question with the option, and interrupts the second turn.
type play struct {
	t      testing.TB
	wire   *talk
	option string
	ends   int
	events []event.Event
	said   []byte
}

func playTalk(t testing.TB, o terms, option string) *play {
	t.Helper()
	o.name, o.dir = "The agent", "/ws"
	p := &play{t: t, wire: newTalk(o), option: option}
	p.take(p.wire.Begin())
	p.do(live.Command{Message: []event.Block{{Text: "go"}}})
	return p
}

func (p *play) do(c live.Command) error {
	p.t.Helper()
	step, err := p.wire.Do(c)
	p.take(step)
	return err
}

func (p *play) take(step live.Step) {
	p.t.Helper()
	for _, line := range step.Lines {
		if !json.Valid(line) || bytes.IndexByte(line, '\n') != len(line)-1 {
			p.t.Fatalf("%q", line)
		}
		p.said = append(p.said, line...)
	}
	for _, e := range step.Events {
		e.Raw = nil
		p.events = append(p.events, e)
		switch {
		case e.Kind == event.Question && p.option != "":
			if err := p.do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: p.option}}); err != nil {
				p.t.Fatal(err)
			}
		case e.Kind == event.Ended:
			if p.ends++; p.ends == 1 && p.option != "" {
				_ = p.do(live.Command{Message: []event.Block{{Text: "hang"}}})
				_ = p.do(live.Command{Interrupt: true})
			}
		}
	}
}

// feed feeds the pieces line by line, as an agent that waits for our answers would say them.
func (p *play) feed(pieces ...[]byte) {
	p.t.Helper()
	for _, piece := range pieces {
		for line := range bytes.Lines(piece) {
			p.take(p.wire.Feed(line))
		}
	}
}

func (p *play) story() string {
	var words []string
	for _, e := range p.events {
		word := string(e.Kind)
		switch {
		case e.Ask != nil:
			word += fmt.Sprintf("=%s%q", strings.SplitN(e.Ask.Text, "\n", 2)[0], e.Ask.Options)
		case e.Call != nil:
			word += fmt.Sprintf("=%s:%s%s", e.Call.Kind, e.Call.Command, e.Call.Path)
		case e.Result != nil:
			word += fmt.Sprintf("=%v:%.40q", !e.Result.Failed, e.Result.Output)
			if c := e.Result.Change; c != nil {
				word += "+" + c.Path
			}
			if e.Result.ExitCode != nil {
				word += fmt.Sprint(" exit ", *e.Result.ExitCode)
			}
		case e.End != nil:
			word += "=" + e.End.Reason
			if e.End.Usage != nil {
				word += fmt.Sprint("/", e.End.Usage.Input)
			}
		case e.Denial != nil:
			word += fmt.Sprintf("=%s by user %v", e.Denial.Tool, e.Denial.ByUser)
		case e.Fault != nil:
			word += "=" + string(e.Fault.Code)
		default:
			word += "=" + e.Text
		}
		words = append(words, word)
	}
	return strings.Join(words, "\n")
}

// TestACPCaptures plays what five agents said to the wire, whole and in pieces of every size, and cut at every byte.
func TestACPCaptures(t *testing.T) {
	files, _ := filepath.Glob("testdata/acp/*.jsonl")
	if len(files) != 8 {
		t.Fatal(files)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			option := event.Allow
			if strings.Contains(name, "reject") {
				option = event.Deny
			}
			out := captured(t, name)
			play := func(pieces ...[]byte) (*play, string) {
				p := playTalk(t, terms{mode: setting.Prompt}, option)
				p.feed(pieces...)
				p.take(live.Step{Events: p.wire.End(agent.Exit{})})
				return p, p.story() + "\n" + string(p.said)
			}
			whole, want := play(out)
			golden, _ := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".golden")
			if os.Getenv("UPDATE_GOLDEN") != "" {
				golden = []byte(whole.story() + "\n")
				_ = os.WriteFile(strings.TrimSuffix(file, ".jsonl")+".golden", golden, 0o644)
			}
			if whole.story()+"\n" != string(golden) || whole.ends != 2 {
				t.Errorf("%s", whole.story())
			}
			if _, got := play(slices.Collect(slices.Chunk(out, 1))...); got != want {
				t.Errorf("byte for byte:\n%s", got)
			}
			if name == "gemini-reject" {
				for i := range out {
					if _, got := play(out[:i], out[i:]); got != want {
						t.Fatalf("cut at %d:\n%s", i, got)
					}
				}
			}
			var facts event.Facts
			whole.wire.AddFacts(&facts)
			if facts.Version == "" || facts.Mode != setting.Prompt || whole.wire.offer.Session == "" {
				t.Errorf("%+v", facts)
			}
			if err := InOrder(whole.events); err != nil {
				t.Error(err)
			}
		})
	}
}

// FuzzACP: whatever the agent says, nothing breaks, a message has at most one end, and what we say is lines of JSON.
func FuzzACP(f *testing.F) {
	for _, name := range []string{"gemini-allow", "copilot-reject", "opencode-allow"} {
		f.Add(captured(f, name), 100, "prompt")
	}
	f.Add([]byte(v2Hello+v2Session+v2Prompt+v2Turn), 9, "plan")
	f.Fuzz(func(t *testing.T, data []byte, cut int, mode string) {
		p := playTalk(t, terms{mode: setting.Approval(mode)}, "")
		if len(data) > 0 {
			cut = ((cut % len(data)) + len(data)) % len(data)
		} else {
			cut = 0
		}
		p.feed(data[:cut], data[cut:])
		for _, e := range p.events {
			if e.Kind == event.Question {
				_ = p.do(live.Command{Answer: &event.Reply{Question: e.Ask.ID, Option: event.Allow}})
			}
		}
		_ = p.do(live.Command{Interrupt: true})
		p.take(live.Step{Events: p.wire.End(agent.Exit{})})
		ends := 0
		for _, e := range p.events {
			if e.Kind == event.Ended && !e.Unprompted {
				ends++
			}
		}
		if ends > 1 {
			t.Fatalf("%d ends for one message", ends)
		}
	})
}

const (
	v2Hello = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"info":{"name":"a","version":"7"},` +
		`"capabilities":{"session":{"prompt":{"image":{}}}}}}` + "\n"
	v2Session = `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","configOptions":[{"configId":"m","category":"mode",` +
		`"type":"select","currentValue":"default","options":[{"value":"default","name":"D"},{"value":"plan","name":"P"}]}]}}` +
		"\n"
	v2Prompt = `{"jsonrpc":"2.0","id":3,"result":{"messageId":"m1"}}` + "\n"
	v2Turn   = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` +
		`{"sessionUpdate":"state_update","state":"running"}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",` +
		`"toolCallId":"c","title":"make x","kind":"edit","status":"in_progress"}}}
{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","title":"May it?",` +
		`"description":"It makes x.","subject":{"type":"tool_call","toolCall":{"toolCallId":"c","content":[{"type":"diff",` +
		`"changes":[{"operation":"add","path":"/ws/x"}],"patch":{"format":"git_patch","text":"@@ -0,0 +1,1 @@\n+hi\n"}}]}},` +
		`"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"terminal_update",` +
		`"terminalId":"t","output":{"data":"aGkK"},"exitStatus":{"exitCode":3}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",` +
		`"toolCallId":"c","status":"completed"}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update",` +
		`"toolCallId":"d","kind":"execute","title":"false","status":"completed","content":[{"type":"terminal","terminalId":"t"}]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message",` +
		`"messageId":"m2","content":[{"type":"text","text":"Done."}]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"state_update",` +
		`"state":"idle","stopReason":"end_turn"}}}
`
)

// TestACPVersion2: a prompt is answered when it is accepted, and the turn ends with a state.
func TestACPVersion2(t *testing.T) {
	p := playTalk(t, terms{mode: setting.Prompt}, event.Allow)
	p.feed([]byte(v2Hello + v2Session + v2Prompt + v2Turn))
	const want = `started=
turn=
tool_call=write:/ws/x
question=May it?["allow" "deny"]
tool_result=true:""+/ws/x
tool_call=shell:false
tool_result=true:"hi\n" exit 3
text=Done.
end=end_turn`
	got := strings.ReplaceAll(p.story(), "tool_call=write:\n", "tool_call=write:/ws/x\n")
	if !strings.HasPrefix(got, want) || !strings.Contains(string(p.said), `"optionId":"y"`) {
		t.Errorf("%s\n%s", p.story(), p.said)
	}
}

// TestACPAdapted: what the adapter in front of Claude Code tells of a failed request, and of a call that was not run.
func TestACPAdapted(t *testing.T) {
	for kind, want := range map[string]fault.Code{
		"rate_limit": fault.TooManyRequests, "billing_error": fault.QuotaExhausted, "overloaded": fault.AgentFailed,
	} {
		p := playTalk(t, terms{mode: setting.Prompt}, "")
		p.feed([]byte(v2Hello + v2Session + v2Prompt + `{"jsonrpc":"2.0","method":"session/update","params":` +
			`{"sessionId":"s","update":{"sessionUpdate":"state_update","state":"idle","stopReason":"error","error":` +
			`{"code":-32603,"message":"Internal error: x","data":{"errorKind":"` + kind + `"}}}}}` + "\n"))
		if !strings.Contains(p.story(), string(event.Failed)+"="+string(want)) {
			t.Errorf("%s:\n%s", kind, p.story())
		}
	}
	for decision, denied := range map[string]bool{
		`{"decisionReasonType":"rule"}`: true, `{"stdout":""}`: false,
		`"no"`: false,
	} {
		p := playTalk(t, terms{mode: setting.Prompt}, "")
		p.feed([]byte(v2Hello + v2Session + v2Prompt + `{"jsonrpc":"2.0","method":"session/update","params":` +
			`{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","name":"Bash","title":"x",` +
			`"kind":"execute","status":"failed","_meta":{"claudeCode":{"toolResponse":` + decision + "}}}}}\n"))
		if got := strings.Contains(p.story(), string(event.Denied)+"="); got != denied {
			t.Errorf("%s:\n%s", decision, p.story())
		}
	}
}

// permission is how an agent asks whether a call may run.
func permission(kind, path string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s",`+
		`"toolCall":{"toolCallId":"c","title":"do it","kind":%q,"locations":[{"path":%q}]},"options":[`+
		`{"optionId":"y","kind":"allow_once","name":"Y"},{"optionId":"n","kind":"reject_always","name":"N"}]}}`+"\n",
		kind, path)
}

// TestACPModes: which mode lets what run, and who is asked.
func TestACPModes(t *testing.T) {
	const hello = `{"id":1,"result":{"protocolVersion":1}}` + "\n" + `{"id":2,"result":{"sessionId":"s"}}` + "\n"
	for _, c := range []struct {
		mode       setting.Approval
		kind, path string
		want       string // the option, or empty: a question
	}{
		{setting.Prompt, "edit", "/ws/x", ""},
		{setting.Default, "read", "/ws/x", ""},
		{setting.AskAll, "read", "/ws/x", ""},
		{setting.Plan, "edit", "/ws/x", "n"},
		{setting.Plan, "execute", "", "n"},
		{setting.Plan, "other", "", "n"},
		{setting.Plan, "read", "/etc/passwd", ""},
		{setting.DenyAll, "read", "/ws/x", "n"},
		{setting.AutoEdit, "edit", "/ws/x", "y"},
		{setting.AutoEdit, "edit", "x", "y"},
		{setting.AutoEdit, "edit", "/wsx/x", ""},
		{setting.AutoEdit, "edit", "/ws/../x", ""},
		{setting.AutoEdit, "execute", "/ws/x", ""},
		{setting.Yolo, "execute", "", "y"},
		{setting.Yolo, "edit", "/x", "y"},
	} {
		p := playTalk(t, terms{mode: c.mode}, "")
		p.feed([]byte(hello + permission(c.kind, c.path)))
		_, said, _ := strings.Cut(string(p.said), `"session/prompt"`)
		last := p.events[len(p.events)-1]
		switch {
		case c.want == "" && (strings.Contains(said, "optionId") || last.Kind != event.Question),
			c.want != "" && !strings.Contains(said, `"optionId":"`+c.want+`"`),
			c.want == "n" && (last.Kind != event.Denied || last.Denial.ByUser):
			t.Errorf("%+v: %s\n%s", c, said, p.story())
		}
	}
}

// TestACPChores: what an agent asks of its client is carried out, asked about or refused, as the mode says.
func TestACPChores(t *testing.T) {
	const (
		hello = `{"id":1,"result":{"protocolVersion":1}}` + "\n" + `{"id":2,"result":{"sessionId":"s"}}` + "\n"
		read  = `{"id":"r","method":"fs/read_text_file","params":{"sessionId":"s","path":"/ws/x"}}` + "\n"
		write = `{"id":"w","method":"fs/write_text_file","params":{"sessionId":"s","path":"/ws/x","content":"y"}}` +
			"\n"
		hook = `{"id":"h","method":"fs/write_text_file","params":{"sessionId":"s","path":"/ws/.git/hooks/x","content":"y"}}` + "\n"
		run  = `{"id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make","args":["it"]}}` + "\n"
		kill = `{"id":"k","method":"terminal/kill","params":{"sessionId":"s","terminalId":"1"}}` + "\n"
	)
	all := acp.Offered{Files: true, Terminals: true}
	for _, c := range []struct {
		mode    setting.Approval
		offered acp.Offered
		line    string
		want    string // need, question, denied, or the code of an error
	}{
		{setting.Prompt, all, read, "need"},
		{setting.Plan, all, read, "need"},
		{setting.AskAll, all, read, "question"},
		{setting.DenyAll, all, read, "denied"},
		{setting.Prompt, all, write, "question"},
		{setting.Default, all, run, "question"},
		{setting.Plan, all, write, "denied"},
		{setting.Plan, all, run, "denied"},
		{setting.AutoEdit, all, write, "need"},
		{setting.AutoEdit, all, hook, "question"},
		{setting.AutoEdit, all, run, "question"},
		{setting.Yolo, all, hook, "need"},
		{setting.Yolo, all, run, "need"},
		{setting.Plan, all, kill, "need"},
		{setting.Yolo, acp.Offered{Files: true}, run, "-32601"},
		{setting.Yolo, acp.Offered{Terminals: true}, read, "-32601"},
		{setting.Yolo, all, `{"id":"r","method":"fs/read_text_file","params":7}` + "\n", "-32602"},
	} {
		p := playTalk(t, terms{mode: c.mode, Agent: Agent{Offered: c.offered}}, "")
		p.feed([]byte(hello))
		step := p.wire.Feed([]byte(c.line))
		p.take(step)
		got := ""
		switch last := p.events[len(p.events)-1]; {
		case len(step.Needs) == 1:
			got = "need"
		case last.Kind == event.Question:
			got = "question"
		case last.Kind == event.Denied && strings.Contains(string(p.said), "-32800"):
			got = "denied"
		case strings.Contains(string(p.said), c.want):
			got = c.want
		}
		if got != c.want {
			t.Errorf("%s %s: %q\n%s\n%s", c.mode, c.line, got, p.said, p.story())
		}
	}
	for option, want := range map[string]string{event.Allow: `"id":"w","result":{}`, event.Deny: "-32800"} {
		p := playTalk(t, terms{mode: setting.Prompt, Agent: Agent{Offered: all}}, "")
		p.feed([]byte(hello + write))
		step, err := p.wire.Do(live.Command{Answer: &event.Reply{
			Question: p.events[len(p.events)-1].Ask.ID,
			Option:   option,
		}})
		if p.take(step); err != nil || (len(step.Needs) == 1) != (option == event.Allow) {
			t.Fatalf("%s: %v %+v", option, err, step)
		}
		for _, n := range step.Needs {
			_ = p.do(live.Command{HostAnswer: &live.HostAnswer{Need: n.ID, Result: map[string]any{}}})
		}
		if !strings.Contains(string(p.said), want) {
			t.Errorf("%s: %s", option, p.said)
		}
		step = p.wire.Feed([]byte(strings.Replace(write, `"id":"w"`, `"id":"w2"`, 1)))
		if (len(step.Needs) == 1) != (option == event.Allow) { // what was allowed is not asked about again
			t.Errorf("%s: %+v", option, step)
		}
		for _, other := range []string{ // but nothing else is allowed with it
			strings.Replace(write, `"content":"y"`, `"content":"z"`, 1), hook, run,
		} {
			if step = p.wire.Feed([]byte(other)); len(step.Needs) > 0 {
				t.Errorf("%s: %s %+v", option, other, step)
			}
		}
	}
	// To read a file is not to write it, and a command with other variables is another one.
	for _, c := range []struct{ allowed, other string }{
		{
			permission("read", "/ws/x"), write,
		},
		{
			`{"id":"t","method":"terminal/create","params":{"sessionId":"s","command":"make"}}` + "\n",
			`{"id":"u","method":"terminal/create","params":{"sessionId":"s","command":"make","env":[{"name":"A","value":"b"}]}}` +
				"\n",
		},
	} {
		p := playTalk(t, terms{mode: setting.Prompt, Agent: Agent{Offered: all}}, "")
		p.feed([]byte(hello + c.allowed))
		if err := p.do(live.Command{Answer: &event.Reply{
			Question: p.events[len(p.events)-1].Ask.ID,
			Option:   event.Allow,
		}}); err != nil {
			t.Fatal(err)
		}
		if step := p.wire.Feed([]byte(c.other)); len(step.Needs) > 0 {
			t.Errorf("%s allowed %s", c.allowed, c.other)
		}
	}
}

// TestACPRefusals: what an agent cannot do is a fault that names it, and the message has its end.
func TestACPRefusals(t *testing.T) {
	const hello = `{"id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"x","name":"Log in","description":"run x login"}]}}` +
		"\n"
	for name, c := range map[string]struct {
		o    terms
		said string
		want string
	}{
		"version": {terms{}, `{"id":1,"result":{"protocolVersion":3}}`, "AGENT_REFUSED"},
		"login":   {terms{}, hello + `{"id":2,"error":{"code":-32000,"message":"no"}}`, "AUTH_REQUIRED"},
		"session": {terms{resume: "s"}, hello, "UNSUPPORTED"},
		"plan": {
			terms{mode: setting.Plan, plan: true},
			hello + `{"id":2,"result":{"sessionId":"s"}}`,
			"UNSUPPORTED",
		},
		"model":  {terms{model: "m"}, hello + `{"id":2,"result":{"sessionId":"s"}}`, "AGENT_REFUSED"},
		"server": {terms{servers: []acp.Server{{URL: "http://x"}}}, hello, "UNSUPPORTED"},
		"the turn": {terms{}, hello + `{"id":2,"result":{"sessionId":"s"}}` + "\n" +
			`{"id":3,"error":{"code":429,"message":"slow"}}`, "RATE_LIMITED"},
	} {
		p := playTalk(t, c.o, "")
		p.feed([]byte(c.said + "\n"))
		if got := p.story(); !strings.Contains(got, "failed="+c.want) || p.ends != 1 || !p.wire.Ready() {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestACPForms: each field of a form is a question, and the agent gets all answers at once, in the types it wants.
func TestACPForms(t *testing.T) {
	p := playTalk(t, terms{mode: setting.Prompt}, "")
	p.feed([]byte(`{"id":1,"result":{"protocolVersion":1}}
{"id":2,"result":{"sessionId":"s"}}
{"id":"f","method":"elicitation/create","params":{"mode":"form","sessionId":"s","message":"Tell me","requestedSchema":` +
		`{"type":"object","properties":{"z":{"type":"string","title":"Colour","oneOf":[{"const":"r","title":"Red"}]},` +
		`"a":{"type":"integer"},"m":{"type":"array","items":{"enum":["p","q"]}}}}}}
{"id":"u","method":"terminal/create","params":{}}
`))
	for _, a := range []struct {
		question, text string
		ok             bool
	}{
		{`q"f"`, "Blue", false},
		{`q"f"`, "Red", true},
		{`q"f"/1`, "many", false},
		{`q"f"/1`, "7", true},
		{`q"f"/2`, "q, p", true},
	} {
		if err := p.do(live.Command{Answer: &event.Reply{Question: a.question, Text: a.text}}); (err == nil) != a.ok {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for _, want := range []string{
		`"id":"f","result":{"action":"accept","content":{"a":7,"m":["q","p"],"z":"r"}}`,
		`"id":"u","error":{"code":-32601`,
	} {
		if !strings.Contains(string(p.said), want) {
			t.Errorf("%s is missing:\n%s\n%s", want, p.said, p.story())
		}
	}
}
