// Package claim says what the calls of an agent say that they change.
//
// It reads only what is recorded of a call: its command, its paths and the texts of an edit. A claim is not believed:
// package touch holds it against what the files were and are.
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

// Of returns what a call says that it changes, made by an agent that works in a directory.
func Of(c event.Done, dir string) []touch.Claim {
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

// real is where a file lies. If it is a link, it is the link that is meant.
func real(dir, path string) string {
	path = pathname.From(dir, path)
	return filepath.Join(pathname.Real(filepath.Dir(path)), filepath.Base(path))
}

// workDir returns where a command runs.
func workDir(c *event.Call, dir string) string {
	in := event.Texts(c.Object(), "workdir", "cwd", "dir_path", "directory")
	for _, at := range in {
		if at != "" {
			dir = pathname.From(dir, at)
		}
	}
	return dir
}

// Hearer hears the events of a conversation, and passes on what the calls in them claim. A nil one does nothing.
type Hearer struct {
	log *touch.Log
	dir string

	mu    sync.Mutex
	open  map[string]*heard
	asked map[string]string // the call that a question is about
}

// heard is a call that is not over.
type heard struct {
	call event.Done
	// of the paths that it named when it began, and of the directories above them that it may make
	was   map[string]*workspace.Status
	above []string
}

// Hear returns what hears the agent that works in a directory, for a log; nil: nobody wants to know.
func Hear(log *touch.Log, dir string) *Hearer {
	if log == nil {
		return nil
	}
	return &Hearer{log: log, dir: dir, open: map[string]*heard{}, asked: map[string]string{}}
}

// Tell hears an event of the agent, or the answer to a question of it, at the time at which it arrives. While a call
// waits for an answer it changes nothing.
func (h *Hearer) Tell(e *event.Event) {
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
		for id := range h.open { // what was interrupted may have changed something
			h.over(id, &event.Result{Failed: true})
		}
	}
}

// over passes on what a call claims that is over, unless it still waits for an answer: then it never ran.
func (h *Hearer) over(id string, r *event.Result) {
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

// begin notes that a call begins, and what is at the paths that it names.
func (h *Hearer) begin(call *event.Call) {
	one := &heard{call: event.Done{Call: *call, Began: time.Now()}, was: map[string]*workspace.Status{}}
	for _, c := range Of(one.call, h.dir) {
		one.was[c.Path] = status(c.Path)
		if !c.Removes {
			one.lookAbove(c.Path)
		}
	}
	h.open[call.ID] = one
}

// lookAbove notes which of the directories above a path the call makes, if it makes the path: those that are not there,
// or have changed a moment ago, when it may have begun.
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

// end passes on what a call claims that is over.
func (h *Hearer) end(one *heard, r *event.Result) {
	c := one.call
	c.Ended = time.Now()
	all := Made(c, r, h.dir)
	for _, dir := range one.above {
		all = append(all, touch.Claim{Path: dir, Began: c.Began, Ended: c.Ended})
	}
	for _, a := range all {
		a.Was, a.Is = one.was[a.Path], status(a.Path)
		if a.Was != nil { // else the call did not name it before somebody could have changed it
			h.log.Claim(a)
		}
	}
}

// Made returns what a call with a result says that it has changed, made by an agent that works in a directory.
func Made(c event.Done, r *event.Result, dir string) []touch.Claim {
	c.Failed = r.Failed
	if r.Input != nil {
		c.Input, c.Canonical = r.Input, nil
		if text := event.Texts(r.Input, "command")["command"]; c.Kind == event.Shell && text != "" {
			c.Command = text
		}
	}
	all := Of(c, dir)
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

// status is that of a path. Where nothing is there, it has the time at which the directory changed last.
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

// edit is what a call makes of a content; see touch.Claim.
type edit = func(content []byte, exists bool) (made []byte, is, ok bool)

// put writes a whole file.
func put(text string) edit {
	return func([]byte, bool) ([]byte, bool, bool) { return []byte(text), true, true }
}

// remove removes a file.
func remove([]byte, bool) ([]byte, bool, bool) { return nil, false, true }

// replace replaces a text, which has to be there once unless each of it is replaced. Without one it makes the file.
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

// member returns the first of the members that is of a type.
func member[T any](in map[string]json.RawMessage, names ...string) (v T, ok bool) {
	for _, name := range names {
		if raw := in[name]; raw != nil && json.Unmarshal(raw, &v) == nil {
			return v, true
		}
	}
	return v, false
}

// edits returns what a call of a tool says that changes files, under the names that the agents give its members.
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

// edited returns the edit of a call that replaces texts in a file, or nil if it does something else.
func edited(in map[string]json.RawMessage) edit {
	list, ok := member[[]map[string]json.RawMessage](in, "edits")
	if !ok {
		list = []map[string]json.RawMessage{in}
	}
	var steps []edit
	for _, one := range list {
		old, there := member[string](one, "old_string", "old_str", "oldString")
		text, also := member[string](one, "new_string", "new_str", "newString")
		each, _ := member[bool](one, "replace_all", "replaceAll", "allow_multiple")
		if !there || !also {
			return nil
		}
		steps = append(steps, replace(old, text, each))
	}
	return inTurn(steps)
}

// inTurn is several edits as one.
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
