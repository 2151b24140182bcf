package run_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/model/anthropic"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
	"omniagent/internal/testkit/scripted"
	"omniagent/internal/walls/guard"
	"omniagent/internal/work/run"
)

// bench is a conversation that delegates to another one. Both are real, with models that say what scripts say.
type bench struct {
	t     *testing.T
	dir   string
	store run.Store
	spec  agent.Spec // with which the other one was opened
	inner model.Client
	outer *engine.Mind

	mu     sync.Mutex
	events []event.Event
	see    func(event.Event)
}

func modelOf(t *testing.T, script string) model.Client {
	t.Helper()
	return anthropic.New(anthropic.Options{
		Base: scripted.Model(t, script).URL(), Key: "k", Model: "m",
		Profile: model.Profile{Window: 200_000, Prices: model.Cost(1, 1)},
	})
}

// delegate is a script that delegates once.
const delegate = `[{"call":{"name":"Delegate","input":{"goal":"do it"}}},{"say":"ok"}]`

func newBench(t *testing.T, inner string, o engine.Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), inner: modelOf(t, inner)}
	b.store = run.Store{Dir: filepath.Join(t.TempDir(), "runs"), Sessions: session.Open(t.TempDir())}
	o.Client, o.Services.Tell = modelOf(t, delegate), b.tell
	o.Rules.Known = tool.Ours().Specs()
	o.Tools = func(tool.Task) []tool.Tool { return b.tools(true, touch.New()) }
	b.outer = engine.New(o)
	t.Cleanup(func() { _, _ = b.outer.Close(context.Background()) })
	return b
}

func (b *bench) tools(delegates bool, touched *touch.Log) (all []tool.Tool) {
	files, err := workspace.OpenDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = files.Close() })
	files.Watch(touched.Put)
	env := &tool.Env{Files: files, Person: !delegates, Seen: &tool.Seen{}}
	if delegates {
		env.Agents = run.Runner{
			Store: b.store, Agents: func() []string { return []string{"inner"} },
			Owner: func(r *run.Run) run.Owner {
				return run.Owner{
					Run: r, Open: b.open, Log: b.t.Logf, Grace: time.Second,
					Spec: func(string) agent.Spec { return agent.Spec{} },
				}
			},
		}
	}
	return tool.Ours().In(env)
}

// open opens the other conversation, as a host's opener does.
func (b *bench) open(ctx context.Context, _ string, s agent.Spec, sv agent.Services) (*conversation.Conversation,
	error,
) {
	b.spec = s
	var journal *session.Session
	var err error
	if s.Resume != "" {
		journal, err = b.store.Sessions.Resume(ctx, s.Resume)
	} else {
		journal, err = b.store.Sessions.Create(ctx, session.Begin{Provider: "p", Model: "m"})
	}
	if err != nil {
		return nil, err
	}
	return conversation.Open(ctx, conversation.Options{
		Journal: journal, Recorded: true, Spec: s, Services: sv, Patience: time.Minute,
		Mind: func(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
			o := engine.Options{
				ID: journal.ID(), Client: b.inner, Services: sv, Mode: s.Terms.Mode, Journal: journal,
				Tools: func(tool.Task) []tool.Tool { return b.tools(false, sv.Touched) },
			}
			o.Rules = guard.Judge{Known: tool.Ours().Specs(), Place: guard.Place{Root: b.dir, Dir: b.dir}}
			return engine.New(o), nil
		},
	})
}

func (b *bench) tell(e event.Event) {
	b.mu.Lock()
	b.events = append(b.events, e)
	see := b.see
	b.mu.Unlock()
	if see != nil {
		see(e)
	}
}

// turn has the outer conversation delegate, and returns the report and the end of the turn.
func (b *bench) turn(see func(event.Event)) (report run.Report, end *event.End) {
	b.t.Helper()
	b.see = see
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := b.outer.Turn(ctx, []event.Block{{Text: "go"}}); err != nil {
		b.t.Fatal(err)
	}
	open := map[string]bool{}
	for _, e := range b.events {
		switch e.Kind {
		case event.ToolCall:
			open[e.Call.ID] = true
		case event.ToolResult:
			if !open[e.Result.ID] {
				b.t.Errorf("a result without its call: %+v", e.Result)
			}
			delete(open, e.Result.ID)
			if r, ok := run.ReadReport(e.Result); ok {
				report = r
			}
		case event.Ended:
			end = e.End
		}
	}
	if len(open) > 0 || end == nil {
		b.t.Errorf("calls without a result: %v, end %v", open, end)
	}
	return report, end
}

// answering answers each question of the outer conversation.
func (b *bench) answering(r event.Reply) func(event.Event) {
	return func(e event.Event) {
		if e.Kind == event.Question {
			r := r
			r.Question = e.Ask.ID
			if err := b.outer.Answer(r); err != nil {
				b.t.Error(err)
			}
		}
	}
}

func asking() agent.Services { return agent.Services{CanAsk: true} }

const writes = `[{"call":{"name":"Write","input":{"file_path":"a.txt","content":"a\n"}}},{"say":"done"}]`

// TestRunnerPermission: what the agent may not do by itself is asked in the conversation that delegated, once, about
// the agent's own call; an answer that gives more than that is a refusal.
func TestRunnerPermission(t *testing.T) {
	for name, row := range map[string]struct {
		reply   event.Reply
		written bool
	}{
		"allow": {event.Reply{Option: event.Allow}, true},
		"deny":  {event.Reply{Option: event.Deny, Text: "not that"}, false},
		"mode":  {event.Reply{Option: event.Allow, Mode: setting.Yolo}, false},
		"rules": {event.Reply{Option: event.Allow, Rules: []string{"Write"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, writes, engine.Options{Mode: setting.Default, Services: asking()})
			asked := 0
			answer := b.answering(row.reply)
			report, _ := b.turn(func(e event.Event) {
				if e.Kind == event.Question {
					asked++
					if e.Ask.Tool.Name != "Write" || e.Parent == "" || !strings.HasPrefix(e.Ask.Text, "inner asks: ") {
						t.Errorf("%+v", e.Ask)
					}
				}
				answer(e)
			})
			_, err := os.Stat(filepath.Join(b.dir, "a.txt"))
			if (err == nil) != row.written || (report.Status == "Done") != row.written || asked != 1 {
				t.Errorf("asked %d times, %v: %+v", asked, err, report)
			}
			if row.written && (len(report.Files) != 1 || report.Files[0].Path != "a.txt" ||
				*report.Files[0].Added != 1) {
				t.Errorf("%+v", report.Files)
			}
			if facts := b.outer.Facts(); strings.Join(facts.Helpers, " ") != tool.RunnerName {
				t.Errorf("%v", facts.Helpers)
			}
		})
	}
}

// TestRunnerCeiling: the agent gets the mode that the conversation has at that moment.
func TestRunnerCeiling(t *testing.T) {
	for _, mode := range []setting.Approval{setting.Plan, setting.Default, setting.AutoEdit, setting.Yolo} {
		b := newBench(t, writes, engine.Options{Mode: mode})
		b.turn(nil)
		if b.spec.Terms.Mode != mode || b.spec.Shared.Approval.Value != mode {
			t.Errorf("%s: %+v", mode, b.spec)
		}
		_, err := os.Stat(filepath.Join(b.dir, "a.txt"))
		if (err == nil) != mode.Edits() {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

const asksColour = `[{"call":{"name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?","header":"Colour",
	"options":[{"label":"blue","description":"b"},{"label":"red","description":"r"}],"multiSelect":false}]}}},{"say":"${result}"}]`

// TestRunnerForm: a form is filled in by the person, and the agent goes on in the same turn.
func TestRunnerForm(t *testing.T) {
	b := newBench(t, asksColour, engine.Options{Mode: setting.Default, Services: asking()})
	report, _ := b.turn(b.answering(event.Reply{
		Option: event.Allow, Input: json.RawMessage(`{"answers":{"Which colour?":"red"}}`),
	}))
	if report.Status != "Done" || !strings.Contains(report.Summary, "red") {
		t.Errorf("%+v", report)
	}
}

// TestRunnerUnanswered: the question of a run outlives a conversation in which nobody answers it.
func TestRunnerUnanswered(t *testing.T) {
	for name, services := range map[string]agent.Services{"nobody": {}, "silence": asking()} {
		b := newBench(t, asksColour, engine.Options{Mode: setting.AutoEdit, Services: services})
		report, _ := b.turn(b.answering(event.Reply{Option: event.Deny, Automatic: true}))
		r, err := b.store.Load(t.Context(), report.RunID)
		if err != nil || r.State != run.NeedsInput || len(r.Open()) != 1 ||
			!strings.HasPrefix(report.Status, "Blocked(") ||
			len(report.Questions) != 1 || !strings.Contains(report.Next, "omniagent answer "+report.RunID) {
			t.Errorf("%s: %v %s %+v", name, err, r.State, report)
		}
	}
}

// TestRunnerElsewhere: an answer of another process closes the question here.
func TestRunnerElsewhere(t *testing.T) {
	b := newBench(t, asksColour, engine.Options{Mode: setting.Default, Services: asking()})
	var once sync.Once
	var withdrawn atomic.Bool
	report, _ := b.turn(func(e event.Event) {
		if e.Kind == event.Withdrawn {
			withdrawn.Store(true)
		}
		if e.Kind != event.Question {
			return
		}
		go once.Do(func() {
			for {
				all, _, err := b.store.List(t.Context())
				if err != nil || len(all) != 1 {
					t.Errorf("%v %v", all, err)
					return
				}
				if all[0].State == run.NeedsInput && len(all[0].Open()) == 1 {
					if err := b.store.Tell(t.Context(), all[0], "", run.Answer{Text: "red", By: 1}); err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	})
	if report.Status != "Done" || !strings.Contains(report.Summary, "red") || !withdrawn.Load() {
		t.Errorf("withdrawn %v: %+v", withdrawn.Load(), report)
	}
}

// TestRunnerSpends: what the agent uses counts for the turn, and for the limit of the conversation.
func TestRunnerSpends(t *testing.T) {
	b := newBench(t, `[{"say":"yes"}]`, engine.Options{Mode: setting.Default})
	report, end := b.turn(nil)
	r, err := b.store.Load(t.Context(), report.RunID)
	if err != nil || r.Result.Usage == nil {
		t.Fatal(err, r.Result)
	}
	alone, first := int64(0), 0.0
	for _, e := range b.events {
		if e.Kind == event.Answered {
			if alone += e.Answer.Usage.Input; first == 0 {
				first = float64(e.Answer.Usage.Input+e.Answer.Usage.Output) / 1e6
			}
		}
	}
	if end.Usage.Input != alone+r.Result.Usage.Input || r.Result.Usage.Input == 0 || end.Usage.CostUSD == nil {
		t.Errorf("%+v, %d alone, %+v", end.Usage, alone, r.Result.Usage)
	}
	limit := engine.Limits{CostUSD: first + *r.Result.Usage.CostUSD/2}
	b = newBench(t, `[{"say":"yes"}]`, engine.Options{Mode: setting.Default, Limits: limit})
	if _, end := b.turn(nil); end.Reason != event.MaxBudget {
		t.Errorf("%+v", end)
	}
}

// TestRunnerInterrupted: with the turn ends the run.
func TestRunnerInterrupted(t *testing.T) {
	b := newBench(t, asksColour, engine.Options{Mode: setting.Default, Services: asking()})
	report, end := b.turn(b.answering(event.Reply{Option: event.Deny, Stop: true}))
	if end.Reason != event.Cancelled {
		t.Errorf("%+v", end)
	}
	if r, err := b.store.Load(t.Context(), report.RunID); err != nil || r.State != run.Cancelled {
		t.Errorf("%v %s", err, r.State)
	}
}
