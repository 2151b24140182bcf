package codex

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/live"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/wire/jsonrpc"
)

// talk implements the client's side of the protocol of codex app-server: JSON-RPC, one object a line, with requests in
// both directions.
//
// A thread is always started read-only, and each turn says what may be written. If a thread is started with a sandbox
// that may write, Codex marks the directory as trusted in the user's settings.
//
//	Begin ──► initialize, thread/list? ──► thread/start, resume or fork ──► ready
//	                                                                          │
//	        ┌─────────────────────────────────────────────────────────────────┘
//	        ▼        message                  response: turn id            turn/completed
//	      idle ──► turn/start ──────────────► running: steer, interrupt ──► Ended, idle
//	        ▲          │ refused                  │ questions: answers go back as responses
//	        └── Ended ─┘                          └──┘
type talk struct {
	live.RPC[ownRequest, question]
	o       threadOptions
	failed  *fault.Fault // why no thread could be opened
	thread  string
	message []any // waits for the thread
	busy    bool  // a message's turn has not ended
	turn    string
	stops   bool // interrupt the turn as soon as it has an id
	mode    setting.Approval
	later   setting.Approval // the mode after this turn
	model   string

	items   items
	threads map[string]string // threads of sub-agents, to the calls that started them
	before  usage             // tokens of the thread when the turn began
	now     usage             // tokens of the thread now
	facts   event.Facts
	servers map[string]string // states of MCP servers
	running map[string]any    // commands that began in this turn, by their items: how they are ended
	record  string            // the transcript of the thread, if known
	from    int64             // where this turn begins in it
}

// threadOptions are the terms with which a conversation is opened.
type threadOptions struct {
	dir        string
	mode       setting.Approval
	canAsk     bool
	sandbox    string // if a person chose one
	network    string
	dirs       []string
	model      string
	system     string
	append     string
	servers    map[string]any
	schema     json.RawMessage
	resume     string
	fork, last bool
}

// ownRequest is a request that we sent.
type ownRequest struct {
	method string
	token  int // if it is a steer
}

// question is a request of Codex that a person has to answer.
type question struct {
	id      json.RawMessage // the id of the request
	method  string
	call    *event.Call
	session bool     // a person may allow it for the rest of the conversation
	keys    []string // Codex's ids of the questions of a form
}

var _ live.Proto = (*talk)(nil)

func newTalk(o threadOptions) *talk {
	t := &talk{
		o: o, mode: o.mode, model: o.model,
		items: newItems(), threads: map[string]string{}, servers: map[string]string{},
		running: map[string]any{},
	}
	t.NoVersion = true
	t.Handle(t.answered, t.requested, t.notified)
	return t
}

// Begin sends the greeting, and opens the thread.
func (t *talk) Begin() live.Step {
	info := map[string]any{"name": "omniagent", "title": "omniagent", "version": "1"}
	experimental := map[string]any{"experimentalApi": true} // for endCommand
	t.send("initialize", map[string]any{"clientInfo": info, "capabilities": experimental})
	t.AddLine(jsonrpc.Notification("initialized", nil)) // Codex reads in order, so we need not wait
	t.open()
	return t.Step.Take()
}

func (t *talk) send(method string, params any) { t.Request(ownRequest{method: method}, method, params) }

func (t *talk) respond(id json.RawMessage, result any) { t.AddLine(jsonrpc.Result(id, result)) }

// Ready reports whether the thread is open, or has failed to open.
func (t *talk) Ready() bool { return t.thread != "" || t.failed != nil }

// End reads the rest of the output.
func (t *talk) End(agent.Exit) []event.Event {
	out := t.Rest()
	if t.busy {
		t.busy = false
		out = append(out, cli.Unfinished(t.thread, ""))
	}
	return out
}

// AddFacts adds the facts that Codex has reported.
func (t *talk) AddFacts(f *event.Facts) {
	f.Mode = t.mode
	f.Merge(t.facts)
	f.Servers = nil
	for name, status := range t.servers {
		f.Servers = append(f.Servers, event.Server{Name: name, Status: status})
	}
	f.Servers = live.SortServers(f.Servers)
}

// answered handles a response to one of our requests.
func (t *talk) answered(w ownRequest, m jsonrpc.Message) []event.Event {
	if m.Error != nil {
		switch w.method {
		case "turn/interrupt", endCommand: // the turn or the command has ended meanwhile
			return nil
		case "turn/steer":
			err := fault.New(fault.Interrupted, "codex did not take the message into its turn: %s",
				cli.FirstLine(m.Error.Message))
			t.Step.AddResult(w.token, err)
			return nil
		}
		return t.refused(w.method, cli.FirstLine(m.Error.Message))
	}
	switch w.method {
	case "thread/list":
		var r struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		if json.Unmarshal(m.Result, &r) != nil || len(r.Data) == 0 {
			return t.refused(w.method, "there is no session of this directory to resume")
		}
		t.o.last, t.o.resume = false, r.Data[0].ID
		t.open()
	case "thread/start", "thread/resume", "thread/fork":
		return t.opened(m.Result)
	case "turn/steer":
		t.Step.AddResult(w.token, nil)
	case "turn/start":
		var r struct {
			Turn struct {
				ID string `json:"id"`
			} `json:"turn"`
		}
		_ = json.Unmarshal(m.Result, &r)
		t.turn = r.Turn.ID
		if t.stops {
			t.stop()
		}
	}
	return nil
}

// open starts or resumes a thread.
func (t *talk) open() {
	if t.o.last {
		t.send("thread/list", map[string]any{"cwd": t.o.dir, "limit": 1})
		return
	}
	policy, _, _ := policies(t.mode, t.o)
	p := map[string]any{"cwd": t.o.dir, "approvalPolicy": policy, "approvalsReviewer": "user", "sandbox": "read-only"}
	set := func(name, value string) {
		if value != "" {
			p[name] = value
		}
	}
	set("model", t.model)
	set("baseInstructions", t.o.system)
	set("developerInstructions", t.o.append)
	if len(t.o.servers) > 0 {
		p["config"] = map[string]any{"mcp_servers": t.o.servers}
	}
	method := "thread/start"
	if t.o.resume != "" {
		method = "thread/resume"
		if t.o.fork {
			method = "thread/fork"
		}
		p["threadId"], p["excludeTurns"] = t.o.resume, true
	}
	t.send(method, p)
}

func (t *talk) opened(result json.RawMessage) []event.Event {
	var r struct {
		Thread struct {
			ID      string `json:"id"`
			Path    string `json:"path"`
			Version string `json:"cliVersion"`
		} `json:"thread"`
		Model    string `json:"model"`
		Provider string `json:"modelProvider"`
	}
	if json.Unmarshal(result, &r) != nil || r.Thread.ID == "" {
		return t.refused("thread/start", "its response has no thread id")
	}
	t.thread = r.Thread.ID
	if !t.o.fork || cli.Size(r.Thread.Path) > 0 { // else the earlier turns and their denials come later
		t.record = r.Thread.Path
	}
	t.facts.Model, t.facts.Provider, t.facts.Version = r.Model, r.Provider, r.Thread.Version
	if t.message != nil {
		t.begin(t.message)
		t.message = nil
	}
	return []event.Event{{Kind: event.Started, Session: t.thread, Model: r.Model}}
}

// begin starts the turn of a message.
func (t *talk) begin(input []any) {
	policy, sandbox, _ := policies(t.mode, t.o)
	p := map[string]any{
		"threadId": t.thread, "input": input, "approvalPolicy": policy, "approvalsReviewer": "user",
		"sandboxPolicy": sandbox,
	}
	if t.model != "" {
		p["model"] = t.model
	}
	if t.o.schema != nil {
		p["outputSchema"] = t.o.schema
	}
	t.turn, t.items.last, t.before = "", "", t.now
	clear(t.running)
	clear(t.items.denied)
	t.from = cli.Size(t.record)
	t.send("turn/start", p)
}

// refused ends the message, because Codex has refused a request for it.
func (t *talk) refused(method, why string) []event.Event {
	f := fault.New(fault.AgentFailed, "codex refused %s: %s", method, why)
	if method != "turn/start" {
		t.failed = f
	}
	events := live.Rejected(f, t.thread, why, t.busy)
	t.message, t.busy, t.stops = nil, false, false
	return events
}

// notified handles a notification.
func (t *talk) notified(m jsonrpc.Message) []event.Event {
	var n notice
	if json.Unmarshal(m.Params, &n) != nil {
		return []event.Event{{Kind: event.Notice, Text: m.Method}}
	}
	parent := ""
	if n.Thread != "" && t.thread != "" && n.Thread != t.thread {
		parent = cmp.Or(t.threads[n.Thread], n.Thread)
	}
	events := t.notice(m.Method, &n, parent != "")
	for i := range events {
		events[i].Parent = parent
	}
	return events
}

// notice returns the events of a notification. other means that it is about a sub-agent.
func (t *talk) notice(method string, n *notice, other bool) []event.Event {
	one := func(e event.Event) []event.Event { return []event.Event{e} }
	switch method {
	case "turn/started":
		if other {
			return nil
		}
		return one(event.Event{Kind: event.TurnBegan, Session: t.thread})
	case "turn/completed":
		if other {
			return nil
		}
		return t.completed(n.Turn)
	case "item/agentMessage/delta":
		return piece(event.Text, n)
	case "item/reasoning/textDelta", "item/reasoning/summaryTextDelta":
		return piece(event.Thinking, n)
	case "item/started", "item/completed":
		return t.item(method, n.Thread, n.Item)
	case "thread/tokenUsage/updated":
		if !other {
			t.spend(n)
			t.facts.Window = n.Usage.Window
		}
		return nil
	case "error":
		return t.trouble(n)
	case "serverRequest/resolved":
		return t.Questions.Withdraw("q" + string(n.RequestID))
	case "thread/compacted":
		return one(event.Event{Kind: event.Compacted, Compaction: &event.Compaction{Trigger: "auto"}})
	case "mcpServer/startupStatus/updated":
		var status string
		if json.Unmarshal(n.Status, &status) == nil {
			t.servers[n.Name] = cmp.Or(map[string]string{"ready": "connected"}[status], status)
		}
		return nil
	case "warning", "configWarning", "guardianWarning", "deprecationNotice":
		return one(event.Event{Kind: event.Notice, Text: n.Message + n.Summary})
	case "thread/status/changed", "thread/started", "account/rateLimits/updated", "remoteControl/status/changed",
		"item/commandExecution/outputDelta", "item/fileChange/outputDelta", "turn/diff/updated",
		"thread/settings/updated", "skills/changed":
		return nil
	}
	return one(event.Event{Kind: event.Notice, Text: method})
}

func piece(k event.Kind, n *notice) []event.Event {
	if n.Delta == "" {
		return nil
	}
	return []event.Event{{Kind: k, Text: n.Delta, Delta: true}}
}

// spend records the token counts of the thread. The first counts of a resumed thread include its earlier turns, and may
// repeat those of its last turn.
func (t *talk) spend(n *notice) {
	now := usage(n.Usage.Total)
	if t.now == (usage{}) {
		if t.before = now; n.TurnID == t.turn {
			t.before = *now.minus(usage(n.Usage.Last))
		}
	}
	t.now = now
}

// trouble handles an error during a turn. An error that ends the turn is repeated in turn/completed.
func (t *talk) trouble(n *notice) []event.Event {
	var e turnError
	_ = json.Unmarshal(n.Error, &e)
	if !n.Retries {
		return nil
	}
	again := reconnecting(e.Message)
	if again == nil {
		again = &event.Repetition{Reason: strings.TrimPrefix(cli.FirstLine(e.Message), "Reconnecting... ")}
	}
	if why := cli.FirstLine(e.Details); why != "" && !strings.Contains(again.Reason, why) {
		again.Reason = strings.TrimPrefix(again.Reason+": "+why, ": ")
	}
	return []event.Event{{Kind: event.Retry, Retry: again}}
}

// completed ends the turn of the message, or a turn that no message began.
func (t *talk) completed(done turn) []event.Event {
	out := slices.Concat(t.Questions.WithdrawAll(), t.recorded())
	end := event.Event{Kind: event.Ended, Session: t.thread, End: &event.End{
		OK: done.Status == "completed", Text: t.items.last, Reason: done.Status,
		Took: time.Duration(done.Duration) * time.Millisecond, Usage: t.now.minus(t.before).event(),
	}}
	if end.Unprompted = !t.busy || t.turn != "" && done.ID != t.turn; !end.Unprompted {
		t.busy, t.stops, t.turn = false, false, ""
		t.mode, t.later = cmp.Or(t.later, t.mode), ""
	}
	if t.o.schema != nil && end.End.OK && json.Valid([]byte(t.items.last)) {
		end.End.Structured = json.RawMessage(t.items.last)
	}
	if !end.End.OK {
		f := faultOf("", nil)
		switch {
		case done.Error != nil:
			f = faultOf(done.Error.Message, snake(done.Error.Info))
			end.End.Reason = cli.FirstLine(done.Error.Message)
		case done.Status == "interrupted":
			t.endCommands()
			f = fault.New(fault.Interrupted, "the agent's turn was interrupted")
		}
		out = append(out, event.Event{Kind: event.Failed, Fault: f, Terminal: true})
	}
	t.before = t.now
	return append(out, end)
}

// recorded returns the denials of a turn that only the transcript has: Codex does not report calls that it refuses
// itself, or that its sandbox stops.
func (t *talk) recorded() (out []event.Event) {
	for _, d := range readRollout(t.record, t.from).Denials {
		if !t.items.denied[d.CallID] {
			t.items.denied[d.CallID] = true
			out = append(out, event.Event{Kind: event.Denied, Session: t.thread, Denial: &d})
		}
	}
	return out
}

// endCommand ends a command that continues after its turn. A Codex without this method returns an error.
const endCommand = "thread/backgroundTerminals/terminate"

// endCommands ends the commands of the interrupted turn, because Codex only stops waiting for them.
func (t *talk) endCommands() {
	for _, id := range slices.Sorted(maps.Keys(t.running)) {
		t.send(endCommand, t.running[id])
	}
	clear(t.running)
}

// snake converts an error's word to the snake case of the transcript, which codeFor expects.
func snake(raw json.RawMessage) json.RawMessage {
	var out []byte
	for _, c := range raw {
		if c >= 'A' && c <= 'Z' {
			out = append(out, '_', c+'a'-'A')
			continue
		}
		out = append(out, c)
	}
	return out
}
