package native

import (
	"context"
	_ "embed" // the matrix
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/talk/session"
	"omniagent/internal/wire/yume"
)

// Name is the name of the native agent.
const Name = "native"

type driver struct {
	cli.Program
	version string
	apis    []model.API
}

// New returns a driver that starts this program as an agent. version is the program's own.
func New(version string, apis []model.API) agent.Driver {
	d := driver{version: version, apis: apis}
	d.Program = cli.Program{
		ID: Name,
		About: agent.About{
			Title: "Native agent", Binary: "omniagent", BuiltIn: true, InstallCommand: "omniagent version",
			Login: "set " + text.Either(provider.Keys(apis)) + ", or name a server of your own with OPENAI_BASE_URL",
		},
		Table: d.table, OneShot: []string{"start", "--input-format=text"}, Interactive: []string{"chat"},
		UsageCodes: []int{2},
	}
	return d
}

// Locate finds this program.
func (d driver) Locate(agent.Env) (agent.Install, error) {
	path, err := os.Executable()
	if err != nil {
		return agent.Install{}, fault.New(fault.NotInstalled, "cannot find the path of this program").Because(err)
	}
	return agent.Install{Path: path, RealPath: pathname.Real(path), Version: d.version}, nil
}

//go:embed matrix.txt
var matrix string

// table returns what this version can do.
func (d driver) table(string) agent.Matrix { return agent.ReadMatrix(d.version, matrix) }

// Command translates the flags. It chooses the id of the session, so that Observe can find its journal.
func (d driver) Command(s agent.Spec) (agent.Launch, []agent.Warning, error) {
	t, err := cli.Translate(d.Matrix(""), s)
	if err != nil {
		return agent.Launch{}, nil, err
	}
	var session string
	switch flags := []string{"--session-id", "-s", "--resume", "-r"}; {
	case cli.Passed(s.Passthrough, flags...):
		session, _ = cli.PassedValue(s.Passthrough, flags...)
	case s.Resume != "":
		session = s.Resume
		t.Args = append(t.Args, "--resume="+s.Resume)
	case s.Newest:
		t.Args = append(t.Args, "--continue")
	case s.Fresh != "":
		session = s.Fresh
		t.Args = append(t.Args, "--session-id="+s.Fresh)
	}
	native := s.Mode == setting.OneShot && ofObject(s.Schema) && !cli.Passed(s.Passthrough, "--json-schema")
	if native {
		t.Args = append(t.Args, "--json-schema="+string(s.Schema), "--json-schema-retries="+strconv.Itoa(s.Retries))
	}
	if r := s.Rehearsal; r != nil {
		t.Args = append(t.Args, "--provider=openai", "--api-base="+r.URL+"/v1")
		if s.Shared.Model.Value == "" {
			t.Args = append(t.Args, "--model="+r.Model)
		}
		t.Env = append(t.Env, "HOME="+r.Home, "OPENAI_API_KEY="+r.Key)
		t.Unset = slices.DeleteFunc(provider.Variables(d.apis),
			func(name string) bool { return name == "OPENAI_API_KEY" })
	}
	l := d.Launch(s, t)
	l.Session, l.Native = session, native
	return l, t.Warnings, nil
}

// longestSchema leaves room for the other arguments on every system.
const longestSchema = 16 << 10

// ofObject reports whether the schema describes an object, so that the model can give its answer as the input of a
// tool.
func ofObject(schema []byte) bool {
	var s struct{ Type string }
	return len(schema) <= longestSchema && json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// Observe reads the journal.
func (d driver) Observe(l agent.Launch) agent.Observer {
	return observer{session.Default(cli.First(l.Env, "HOME")), l.Session}
}

type observer struct {
	store session.Store
	id    string
}

// After returns the evidence of the last turn in the journal.
func (o observer) After(agent.Exit) agent.Evidence {
	if o.id == "" {
		return agent.Evidence{}
	}
	view, err := o.store.Show(o.id)
	if err != nil {
		return agent.Evidence{Session: o.id}
	}
	defer view.Close()
	e := agent.Evidence{
		Session: o.id, DenialsKnown: true, Answered: agent.No, Model: view.State.Model,
		Walls: view.State.Measured(), Records: []string{filepath.Join(o.store.Dir(), o.id+".jsonl")},
	}
	var denials []event.Denial
	var calls cli.Calls
	for entry, err := range view.Entries() {
		if err != nil {
			continue
		}
		switch r := entry.Record.(type) {
		case session.Denied:
			denials = append(denials, event.Denial{CallID: r.Call, Tool: r.Tool, Reason: r.Reason})
			calls.Drop(r.Call)
		case session.Message:
			note(&calls, r, entry.Time)
			if r.Usage != nil {
				e.Answered = agent.Yes
			}
		case session.End:
			e.Denials, denials = denials, nil
			e.Usage, e.Fault = &event.Usage{}, nil
			if used := r.Ended().Usage; used != nil {
				*e.Usage = *used
				e.Usage.CostUSD = nil
			}
			if r.Ended().Reason == event.MaxFormErrors {
				e.Fault = fault.New(fault.SchemaUnmet, "no answer of the model fits the schema").
					Hint("simplify the schema, or choose another model with --model")
			}
		}
	}
	e.Calls = calls.Done()
	return e
}

// note adds a message's calls of tools that may change files, and their results, to calls.
func note(calls *cli.Calls, m session.Message, at time.Time) {
	kinds := map[string]event.ToolKind{
		"Bash": event.Shell, "Write": event.Write, "Edit": event.Write, "MultiEdit": event.Write,
	}
	for _, b := range m.Blocks {
		switch kind, known := kinds[b.Name]; {
		case b.Kind == model.Result:
			calls.End(b.ID, at, b.Failed)
		case known && b.Kind == model.Call && b.Broken == "":
			calls.Begin(event.NewCall(b.ID, b.Name, kind, b.Input, "file_path"), at)
		}
	}
}

// Decode returns a decoder for the lines of start, or nil for another output.
func (driver) Decode(o setting.Output) agent.Decoder {
	if o != setting.StreamJSON {
		return nil
	}
	return &yume.Decoder{}
}

// Mind returns a Mind that starts a process for every turn. Open returns one within this process.
func (d driver) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	return cli.TurnMind(d, s, sv)
}
