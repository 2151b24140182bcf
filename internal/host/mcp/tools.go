package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/wire/jsonrpc"
)

// tools returns the declarations of the tools.
func (s *server) tools() []map[string]any {
	type object = map[string]any
	allowed, reads := s.allowed(), s.o.Ceiling == Read && s.o.Reads != setting.Default
	all := []object{
		{
			"name": "list_agents", "title": "List coding agents",
			"description": "Which other coding agents are on this machine and can be asked with ask_agent: name, " +
				"version, the modes that are allowed here. Starts nothing.",
			"inputSchema": object{"type": "object", "properties": object{}, "additionalProperties": false},
			"annotations": object{"readOnlyHint": true, "openWorldHint": false},
		},
		{
			"name": "ask_agent", "title": "Ask a coding agent",
			"description": "Give another coding agent a task and wait for its answer. It starts without any " +
				"knowledge of this conversation, so the prompt has to say all " +
				"that it needs. Its questions come back as a result with status needs_input; " +
				"answer by asking again with the session. " +
				"What it was not allowed to do is listed in denials.",
			"inputSchema": object{
				"type": "object", "required": []string{"agent", "prompt"}, "additionalProperties": false,
				"properties": object{
					"agent":  object{"type": "string", "description": "its name, from list_agents"},
					"prompt": object{"type": "string", "minLength": 1, "description": "the whole task"},
					"dir": object{"type": "string", "description": "where it works; default: " +
						s.o.Roots[0]},
					"mode": object{
						"type": "string", "enum": allowed, "default": Read,
						"description": "read: it changes nothing; edit: it may change files; yolo: everything",
					},
					"model": object{
						"type":        "string",
						"description": "in the agent's own words; default: its own",
					},
					"session": object{
						"type":        "string",
						"description": "the session of an earlier answer, to continue it",
					},
					"timeout_seconds": object{
						"type": "integer", "minimum": 1, "maximum": int(s.o.Most.Seconds()),
						"default": int(min(s.o.Timeout, s.o.Most).Seconds()),
					},
				},
			},
			"annotations": object{"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": true},
		},
	}
	if s.undoes() {
		all = append(all, object{
			"name": "undo", "title": "Take a turn back",
			"description": "Take back what the last turn of a session that ask_agent began here did to its " +
				"directory. What was changed after the turn stays as it is and is listed.",
			"inputSchema": object{
				"type": "object", "required": []string{"session"}, "additionalProperties": false,
				"properties": object{
					"session": object{"type": "string", "description": "the session of an answer of ask_agent"},
					"redo":    object{"type": "boolean", "description": "take the last undo back instead"},
				},
			},
			"annotations": object{"readOnlyHint": false, "destructiveHint": false, "openWorldHint": false},
		})
	}
	return all
}

// undoes reports whether the tool undo is offered: agents may change files, and snapshots are taken.
func (s *server) undoes() bool { return s.o.Undo != nil && s.o.Ceiling != Read }

// undo takes back a turn of an agent that was asked here.
func (s *server) undo(ctx context.Context, raw json.RawMessage) outcome {
	var r struct {
		Session string `json:"session"`
		Redo    bool   `json:"redo"`
	}
	if err := strict(raw, &r); err != nil {
		return mistake("%v", err)
	}
	s.mu.Lock()
	before, known := s.sessions[r.Session]
	s.mu.Unlock()
	if !known {
		return mistake("there is no session %.100q that was begun here", r.Session)
	}
	said, err := s.o.Undo(ctx, before.dir, r.Session, r.Redo)
	if err != nil {
		return mistake("nothing was taken back: %v", err)
	}
	return textResult(said, nil)
}

// allowed returns the modes up to the maximum.
func (s *server) allowed() []Mode { return Modes()[:slices.Index(Modes(), s.o.Ceiling)+1] }

// outcome is the result of a tool.
type outcome struct {
	Content    []content `json:"content"`
	Structured any       `json:"structuredContent,omitempty"`
	Failed     bool      `json:"isError,omitempty"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

func textResult(text string, structured any) outcome {
	return outcome{Content: []content{{"text", text}}, Structured: structured}
}

// mistake returns the result for a call that the model can correct.
func mistake(format string, args ...any) outcome {
	o := textResult(fmt.Sprintf(format, args...), nil)
	o.Failed = true
	return o
}

// call runs a tool in its own goroutine.
func (s *server) call(ctx context.Context, id, params json.RawMessage) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		s.refuse(id, jsonrpc.InvalidParams, "tools/call needs a name and arguments")
		return
	}
	if p.Name != "list_agents" && p.Name != "ask_agent" && (p.Name != "undo" || !s.undoes()) {
		s.refuse(id, jsonrpc.InvalidParams, "there is no tool %.100q", p.Name)
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	_, twice := s.running[string(id)]
	if !twice {
		s.running[string(id)] = cancel
	}
	s.mu.Unlock()
	if twice {
		cancel(nil)
		s.refuse(id, jsonrpc.InvalidRequest, "a request with that id is not answered yet")
		return
	}
	s.calls.Go(func() {
		defer cancel(nil)
		var result outcome
		switch p.Name {
		case "list_agents":
			result = s.list(p.Arguments)
		case "undo":
			result = s.undo(ctx, p.Arguments)
		default:
			result = s.ask(ctx, p.Arguments, s.progress(p.Meta.Token))
		}
		s.mu.Lock()
		delete(s.running, string(id))
		s.mu.Unlock()
		if !errors.Is(context.Cause(ctx), errCancelled) { // a client that cancels expects no response
			s.say(jsonrpc.Result(id, result))
		}
	})
}

// progress reports on a running call to a client that asked for it.
func (s *server) progress(token json.RawMessage) func(string) {
	if usable(token) == nil {
		return func(string) {}
	}
	var mu sync.Mutex
	n := 0
	return func(what string) {
		mu.Lock()
		defer mu.Unlock()
		n++
		params := map[string]any{"progressToken": token, "progress": n, "message": what}
		s.out.Offer(jsonrpc.Notification("notifications/progress", params)) // it may be dropped
	}
}

func (s *server) list(arguments json.RawMessage) outcome {
	if err := strict(arguments, &struct{}{}); err != nil {
		return mistake("list_agents takes no arguments: %v", err)
	}
	all, err := s.agents()
	if err != nil {
		return mistake("%v", err)
	}
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "%s: %s", a.Name, a.Title)
		switch {
		case !a.Installed:
			fmt.Fprintf(&b, ", not installed (%s)\n", a.Install)
			continue
		case a.Version != "":
			fmt.Fprintf(&b, " %s", a.Version)
		}
		fmt.Fprintf(&b, "; modes: %s\n", strings.Join(text.Words(a.Modes), ", "))
	}
	fmt.Fprintf(&b, "Directories: %s\n", strings.Join(s.o.Roots, ", "))
	return textResult(b.String(), map[string]any{"agents": all, "mode": s.o.Ceiling, "dirs": s.o.Roots})
}

// agents returns the agents, each with the allowed modes.
func (s *server) agents() ([]Agent, error) {
	all, err := s.o.Agents()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Modes = slices.DeleteFunc(slices.Clone(all[i].Modes),
			func(m Mode) bool { return !slices.Contains(s.allowed(), m) })
	}
	return all, nil
}

// askInput is the input of ask_agent.
type askInput struct {
	Agent   string   `json:"agent"`
	Prompt  string   `json:"prompt"`
	Dir     string   `json:"dir"`
	Mode    Mode     `json:"mode"`
	Model   string   `json:"model"`
	Session string   `json:"session"`
	Timeout *float64 `json:"timeout_seconds"`

	limit  time.Duration
	goesOn bool // the agent can resume a session
}

// strict reads an object. It returns an error for unknown members.
func strict(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more than one value")
		}
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(fault.InJSON(err).Error(), "json: "))
	}
	return nil
}

// check reads and completes a request. It returns an error if the request is invalid or not allowed.
func (s *server) check(raw json.RawMessage) (askInput, error) {
	r := askInput{}
	if err := strict(raw, &r); err != nil {
		return r, err
	}
	all, err := s.agents()
	if err != nil {
		return r, err
	}
	names := []string{}
	for _, a := range all {
		names = append(names, a.Name)
	}
	i := slices.IndexFunc(all, func(a Agent) bool { return a.Name == r.Agent || slices.Contains(a.Aliases, r.Agent) })
	switch {
	case i < 0:
		return r, fmt.Errorf("there is no agent %.100q; there are %s", r.Agent, strings.Join(names, ", "))
	case !all[i].Installed:
		return r, fmt.Errorf("%s is not installed; a person can do that: %s", all[i].Title, all[i].Install)
	case strings.TrimSpace(r.Prompt) == "":
		return r, errors.New("the prompt is empty: say what is to be done")
	case len(r.Prompt) > maxPrompt || !utf8.ValidString(r.Prompt):
		return r, fmt.Errorf("a prompt is a text of at most %d bytes; put what is longer into a file and name it",
			maxPrompt)
	}
	r.Agent, r.goesOn = all[i].Name, all[i].GoesOn
	r.Mode = cmp.Or(r.Mode, Read)
	// the words of the other hosts
	if approval, ok := setting.ParseApproval(string(r.Mode)); ok && !slices.Contains(Modes(), r.Mode) {
		if i := slices.IndexFunc(Modes(), func(m Mode) bool { return m.Approval(s.o.Reads) == approval }); i >= 0 {
			r.Mode = Modes()[i]
		}
	}
	switch {
	case !slices.Contains(Modes(), r.Mode):
		return r, fmt.Errorf("there is no mode %.100q; there are %s", r.Mode,
			strings.Join(text.Words(s.allowed()), ", "))
	case !slices.Contains(s.allowed(), r.Mode):
		return r,
			fmt.Errorf(
				"the mode %s is more than this server was started with (--allow-mode %s); only a person can "+
					"change that", r.Mode, s.o.Ceiling)
	case !slices.Contains(all[i].Modes, r.Mode):
		return r, fmt.Errorf("%s has no mode %s; it has %s", r.Agent, r.Mode,
			strings.Join(text.Words(all[i].Modes), ", "))
	}
	r.limit = min(s.o.Timeout, s.o.Most)
	if r.Timeout != nil {
		if *r.Timeout < 1 || *r.Timeout > s.o.Most.Seconds() {
			return r, fmt.Errorf("timeout_seconds is a number from 1 to %d", int(s.o.Most.Seconds()))
		}
		r.limit = time.Duration(*r.Timeout * float64(time.Second))
	}
	return r, s.place(&r)
}

// place determines the directory of the agent. It returns an error if that is not in one of the server's, or the
// session is unknown.
func (s *server) place(r *askInput) error {
	if r.Session != "" {
		s.mu.Lock()
		before, known := s.sessions[r.Session]
		s.mu.Unlock()
		switch {
		case !known:
			return fmt.Errorf("the session %.100q was not begun here; leave it out to begin one", r.Session)
		case before.agent != r.Agent:
			return fmt.Errorf("the session %s is one of %s", r.Session, before.agent)
		case !r.goesOn:
			return fmt.Errorf("%s cannot go on with a session; leave it out to begin one", r.Agent)
		case r.Dir == "":
			r.Dir = before.dir
		}
	}
	r.Dir = pathname.From(s.o.Roots[0], r.Dir)
	real, err := filepath.EvalSymlinks(r.Dir)
	if err != nil {
		return fmt.Errorf("there is no directory %.300q", r.Dir)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return fmt.Errorf("%.300q is not a directory", r.Dir)
	}
	for _, root := range s.o.Roots {
		if resolved, err := filepath.EvalSymlinks(root); err == nil && pathname.Within(resolved, real) {
			r.Dir = real
			return nil
		}
	}
	return fmt.Errorf("%.300q is not in a directory that this server was started with: %s", r.Dir,
		strings.Join(s.o.Roots, ", "))
}
