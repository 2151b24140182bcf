package tool

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

// Write returns a tool that creates or replaces a file.
func Write(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Write", Kind: event.Write, Rule: event.RulePath, Changes: true})
	return s.plan(func(in *input) (Action, error) {
		written, content := in.text("file_path", true), in.text("content", true)
		s, err := newSubject(env, written)
		if err != nil {
			return Action{}, err
		}
		return Action{
			Paths: s.paths, Title: "Write " + s.shown, Asked: s.note,
			Run: func(ctx context.Context) Result {
				change, err := writeWhole(ctx, env, s, content)
				if err != nil {
					return failed(err)
				}
				return Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s",
					utf8.RuneCountInString(content), s.shown), Change: change}
			},
		}, nil
	})
}

// subject is the file that a call changes.
type subject struct {
	name   string   // relative to the root
	target string   // its target, if it is a link
	shown  string   // as the model wrote it, for messages
	paths  []string // name and target, so that a decision sees .git/hooks behind a link named docs
	files  *workspace.Dir
	asked  *FileState // its state when a person was asked; nil: nobody was asked
}

func newSubject(env *Env, written string) (s *subject, err error) {
	s = &subject{shown: text.Name(written), files: env.Files}
	if s.name, err = env.Files.Name(written); err != nil {
		return s, err
	}
	if s.target, err = env.Files.Resolve(s.name); err != nil {
		return s, err
	}
	s.paths = []string{s.name}
	if s.target != s.name {
		s.paths = append(s.paths, s.target)
	}
	return s, nil
}

func writeWhole(ctx context.Context, env *Env, s *subject, content string) (*event.Change, error) {
	var d document
	var was before
	o := workspace.ReplaceOptions{Target: s.target}
	old, print, err := env.Files.Load(s.name, largestFile)
	if err := s.unseen(print); err != nil {
		return nil, err
	}
	switch {
	case err == nil:
		if err := env.Seen.check(s.name, s.shown, print); err != nil {
			return nil, err
		}
		if _, seen := env.Seen.Lookup(s.name); seen || s.asked != nil {
			o.Expect = &print
		}
		was, d = shownBefore(old, true), decode(old)
	case errors.Is(err, fault.FileMissing):
		was = shownBefore(nil, false)
		o.Expect = &workspace.Fingerprint{} // do not overwrite a file that appears in the meantime
	case errors.Is(err, fault.FieldTooLarge), errors.Is(err, fault.PermissionDenied):
		// The old content only matters if it was recorded and has changed since.
		if _, seen := env.Seen.Lookup(s.name); seen {
			return nil, changed(s.shown)
		}
	default:
		return nil, reader{env: env, name: s.name, shown: s.shown}.explain(err)
	}
	d.odd = nil
	out := d.encode([]byte(strings.TrimPrefix(content, d.bom())))
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Interrupted, "%s was not written", s.shown).Because(err)
	}
	if err := env.Files.Replace(s.name, out, o); err != nil {
		return nil, writeFailed(s.shown, err)
	}
	env.Seen.Record(s.name, workspace.FingerprintOf(out))
	return changeOf(env, s, was, out), nil
}

// longestShown limits the size of a file whose change a host gets.
const longestShown = 1 << 20

// before is the content of a file before the change. ok reports whether it can be shown.
type before struct {
	text *string // nil if there was no file
	ok   bool
}

// shownBefore copies the content, because the change may reuse the bytes.
func shownBefore(data []byte, existed bool) before {
	switch {
	case !existed:
		return before{ok: true}
	case len(data) > longestShown || !utf8.Valid(data):
		return before{}
	}
	text := string(data)
	return before{&text, true}
}

// changeOf returns the change of a file, or nil if it is not text or too long.
func changeOf(env *Env, s *subject, was before, out []byte) *event.Change {
	if !was.ok || len(out) > longestShown || !utf8.Valid(out) {
		return nil
	}
	path := filepath.FromSlash(s.name)
	if !filepath.IsAbs(path) {
		path = filepath.Join(env.Files.Path(), path)
	}
	return &event.Change{Path: path, Old: was.text, New: string(out)}
}
