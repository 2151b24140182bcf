// Package claim finds the changes of files that an agent's tool calls say they make.
//
// It reads only what is recorded of a call: its command, its paths and the texts of an edit. A claim may be false:
// package touch compares it with the files as they were and as they are.
package claim

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/touch"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/guard"
)

// Claims returns the changes that a call says it makes. dir is the directory in which the agent works.
func Claims(c event.FinishedCall, dir string) []touch.Claim {
	var all []touch.Claim
	switch {
	case c.Kind == event.Shell:
		for _, a := range guard.Alters(c.Command, workDir(&c.Call, dir), "") {
			all = append(all, touch.Claim{
				Path: a.Path, From: a.From, Whole: a.Whole, Removes: a.Removes, Beneath: a.Beneath,
				Edit: a.Edit, Unsure: !a.Sure || c.Failed,
			})
		}
		if strings.Contains(c.Command, begins) { // codex takes apply_patch out of a command
			all = append(all, patched(c.Command)...)
		}
	case c.Kind == event.Write && !c.Failed:
		all = edits(&c.Call)
	}
	for i := range all {
		one := &all[i]
		one.Path, one.Began, one.Ended = real(dir, one.Path), c.Began, c.Ended
		if one.From != "" {
			one.From = real(dir, one.From)
		}
	}
	return all
}

// real returns the path with the links of its directory resolved, but not a link at its end.
func real(dir, path string) string {
	path = pathname.From(dir, path)
	return filepath.Join(pathname.Real(filepath.Dir(path)), filepath.Base(path))
}

// workDir returns the directory in which a command runs.
func workDir(c *event.Call, dir string) string {
	in := event.Texts(c.Object(), "workdir", "cwd", "dir_path", "directory")
	for _, at := range in {
		if at != "" {
			dir = pathname.From(dir, at)
		}
	}
	return dir
}

// Reporter gets the events of a conversation, and reports what the calls in them claim to a log. A nil one does
// nothing.
type Reporter struct {
	log *touch.Log
	dir string

	mu    sync.Mutex
	open  map[string]*heard
	asked map[string]string // the call that a question is about
}

// heard is a call that has not ended.
type heard struct {
	call event.FinishedCall
	// of the paths that it named when it began, and of their parent directories, which it may create
	was   map[string]*workspace.Status
	above []string
}

// NewReporter returns a Reporter for the agent that works in dir, or nil if log is nil.
func NewReporter(log *touch.Log, dir string) *Reporter {
	if log == nil {
		return nil
	}
	return &Reporter{log: log, dir: dir, open: map[string]*heard{}, asked: map[string]string{}}
}

// Tell handles an event of the agent, or the answer to one of its questions, at the time at which it arrives. While a
// call waits for an answer it changes nothing.
func (h *Reporter) Tell(e *event.Event) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case e.Kind == event.ToolCall && e.Call != nil:
		h.begin(e.Call)
	case e.Kind == event.ToolResult && e.Result != nil:
		h.over(e.Result.ID, e.Result)
	case e.Kind == event.Denied && e.Denial != nil:
		delete(h.open, e.Denial.CallID) // it never ran
	case e.Kind == event.Question && e.Ask != nil && e.Ask.Tool != nil:
		h.asked[e.Ask.ID] = e.Ask.Tool.ID
	case e.Kind == event.Replied && e.Reply != nil:
		id := h.asked[e.Reply.Question]
		delete(h.asked, e.Reply.Question)
		if one := h.open[id]; one != nil {
			h.begin(&one.call.Call) // it begins now
		}
		if e.Reply.Option == event.Deny {
			delete(h.open, id)
		}
	case e.Kind == event.Ended:
		for id := range h.open { // an interrupted call may have changed something
			h.over(id, &event.Result{Failed: true})
		}
	}
}

// over reports what a call claims once it has ended. A call that still waits for an answer never ran and claims
// nothing.
func (h *Reporter) over(id string, r *event.Result) {
	one := h.open[id]
	delete(h.open, id)
	for question, about := range h.asked {
		if about == id {
			delete(h.asked, question)
			one = nil
		}
	}
	if one != nil {
		h.end(one, r)
	}
}

// begin records that a call begins, and the status of the paths that it names.
func (h *Reporter) begin(call *event.Call) {
	one := &heard{call: event.FinishedCall{Call: *call, Began: time.Now()}, was: map[string]*workspace.Status{}}
	for _, c := range Claims(one.call, h.dir) {
		one.was[c.Path] = status(c.Path)
		if !c.Removes {
			one.lookAbove(c.Path)
		}
	}
	h.open[call.ID] = one
}

// lookAbove records which parent directories of path the call may create: those that are missing, and those that
// changed so recently that the call may have created them.
func (o *heard) lookAbove(path string) {
	call := touch.Claim{Began: o.call.Began}
	for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		is := status(dir)
		if is.Mode != 0 && !call.Starts(is.Changed) {
			return
		}
		if o.was[dir] == nil {
			o.was[dir], o.above = is, append(o.above, dir)
		}
	}
}

// end reports what a call claims once it has ended.
func (h *Reporter) end(one *heard, r *event.Result) {
	c := one.call
	c.Ended = time.Now()
	all := ChangesOf(c, r, h.dir)
	for _, dir := range one.above {
		all = append(all, touch.Claim{Path: dir, Began: c.Began, Ended: c.Ended})
	}
	for _, a := range all {
		a.Before, a.After = one.was[a.Path], status(a.Path)
		if a.Before != nil { // otherwise the call named it only after somebody could have changed it
			h.log.Claim(a)
		}
	}
}

// ChangesOf returns the changes that a call with a result says it has made. dir is the directory in which the agent
// works.
func ChangesOf(c event.FinishedCall, r *event.Result, dir string) []touch.Claim {
	c.Failed = r.Failed
	if r.Input != nil {
		c.Input, c.Canonical = r.Input, nil
		if text := event.Texts(r.Input, "command")["command"]; c.Kind == event.Shell && text != "" {
			c.Command = text
		}
	}
	all := Claims(c, dir)
	if d := r.Change; d != nil && !r.Failed {
		path := real(dir, d.Path)
		all = slices.DeleteFunc(all, func(c touch.Claim) bool { return c.Path == path })
		all = append(all, touch.Claim{Path: path, Began: c.Began, Ended: c.Ended, Edit: put(d.New)})
		if d.Old != nil {
			all[len(all)-1].Edit = replace(*d.Old, d.New, false)
		}
	}
	return all
}

// status returns the status of a path. That of a missing file has only the time of the last change of its directory.
func status(path string) *workspace.Status {
	info, err := os.Lstat(path)
	if err == nil {
		is := workspace.StatusOf(info)
		return &is
	}
	if info, err = os.Lstat(filepath.Dir(path)); err != nil {
		return &workspace.Status{}
	}
	return &workspace.Status{Changed: workspace.StatusOf(info).Changed}
}

// edit returns what a call makes of the content of a file; see touch.Claim.
type edit = func(content []byte, exists bool) (made []byte, is, ok bool)

// put returns an edit that writes a whole file.
func put(text string) edit {
	return func([]byte, bool) ([]byte, bool, bool) { return []byte(text), true, true }
}

// remove is an edit that removes a file.
func remove([]byte, bool) ([]byte, bool, bool) { return nil, false, true }

// replace returns an edit that replaces old, which must occur exactly once unless each is set. An empty old creates the
// file.
func replace(old, text string, each bool) edit {
	return func(content []byte, exists bool) ([]byte, bool, bool) {
		n := bytes.Count(content, []byte(old))
		switch {
		case old == "":
			return []byte(text), true, len(content) == 0
		case !exists || n == 0 || n > 1 && !each:
			return nil, false, false
		}
		return bytes.ReplaceAll(content, []byte(old), []byte(text)), true, true
	}
}

// member returns the value of the first of the named members that has the type T.
func member[T any](in map[string]json.RawMessage, names ...string) (v T, ok bool) {
	for _, name := range names {
		if raw := in[name]; raw != nil && json.Unmarshal(raw, &v) == nil {
			return v, true
		}
	}
	return v, false
}

// edits returns what a call of a file tool claims, by the argument names of all agents.
func edits(c *event.Call) []touch.Claim {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(c.Object(), &in)
	text, ok := member[string](in, "input", "patch", "patchText", "patch_text")
	if ok && strings.Contains(text, begins) {
		return patched(text)
	}
	if list, ok := member[[]fileChange](in, "changes"); ok {
		var all []touch.Claim
		for _, one := range list {
			all = append(all, one.claims()...)
		}
		return all
	}
	if c.Path == "" {
		return nil
	}
	claim := touch.Claim{Path: c.Path, Edit: edited(in)}
	if text, ok := member[string](in, contents()...); ok && claim.Edit == nil {
		claim.Edit, claim.Whole = put(text), true
	}
	return []touch.Claim{claim}
}

func contents() []string { return []string{"content", "file_text", "contents"} }

// edited returns the edit of a call that replaces texts in a file, or nil for any other call.
func edited(in map[string]json.RawMessage) edit {
	list, ok := member[[]map[string]json.RawMessage](in, "edits")
	if !ok {
		list = []map[string]json.RawMessage{in}
	}
	var steps []edit
	for _, one := range list {
		old, hasOld := member[string](one, "old_string", "old_str", "oldString")
		text, hasNew := member[string](one, "new_string", "new_str", "newString")
		each, _ := member[bool](one, "replace_all", "replaceAll", "allow_multiple")
		if !hasOld || !hasNew {
			return nil
		}
		steps = append(steps, replace(old, text, each))
	}
	return inTurn(steps)
}

// inTurn combines edits into one that applies them one after the other.
func inTurn(steps []edit) edit {
	return func(content []byte, exists bool) ([]byte, bool, bool) {
		ok := true
		for _, step := range steps {
			if content, exists, ok = step(content, exists); !ok {
				return nil, false, false
			}
		}
		return content, exists, ok
	}
}
