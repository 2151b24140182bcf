package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"omniagent/internal/event"
	"omniagent/internal/fault"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
	"omniagent/internal/workspace"
)

const writeExample = `{"file_path": "src/main.go", "content": "package main\n"}`

// Write makes or replaces a file.
func Write(env *Env) Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: "Write",
			Description: "Writes a file as a whole, whether it exists or not; directories that lead to it are made. To change part of a file " +
				"use Edit. A file that has changed since you read it must be read again first.",
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"file_path":{"type":"string","description":"Path of the file, relative to the workspace or absolute"},` +
				`"content":{"type":"string","description":"All that the file shall hold"}},"required":["file_path","content"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			others := withNames(pathNames(), map[string]string{"contents": "content", "text": "content", "file_text": "content"})
			in := readInput("Write", raw, writeExample, []string{"file_path", "content"}, others)
			written, content := in.text("file_path", true), in.text("content", true)
			if err := in.err(); err != nil {
				return Action{}, err
			}
			s, err := newSubject(env, written)
			if err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Write, Changes: true, Paths: s.paths, Title: "Write " + s.shown, Input: in.json(),
				Run: func(ctx context.Context, _ func(string)) Result {
					if err := writeWhole(ctx, env, s, content); err != nil {
						return failed(err)
					}
					return Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(content), s.shown)}
				},
			}, nil
		},
	}
}

// subject is the file that a call changes.
type subject struct {
	name   string   // beneath the root
	target string   // what that leads to
	shown  string   // as the model wrote it, for messages
	paths  []string // both, for who decides about the call: he sees .git/hooks behind a link that is called docs
}

func newSubject(env *Env, written string) (s subject, err error) {
	s.shown = text.Name(written)
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

func writeWhole(ctx context.Context, env *Env, s subject, content string) error {
	var d document
	o := workspace.ReplaceOptions{Target: s.target}
	old, print, err := env.Files.Load(s.name, largestFile)
	switch {
	case err == nil:
		if err := env.Seen.check(s.name, s.shown, print); err != nil {
			return err
		}
		if _, seen := env.Seen.Lookup(s.name); seen {
			o.Expect = &print
		}
		d = decode(old)
	case errors.Is(err, fault.FileMissing):
		o.Expect = &workspace.Fingerprint{} // a file that appears meanwhile is somebody's
	case errors.Is(err, fault.FieldTooLarge), errors.Is(err, fault.PermissionDenied):
		// What is there is not needed, unless it has been seen and was something else then.
		if _, seen := env.Seen.Lookup(s.name); seen {
			return changed(s.shown)
		}
		if errors.Is(err, fault.FileMissing) {
			o.Expect = &workspace.Fingerprint{} // a file that somebody makes meanwhile is his
		}
	default:
		return reader{env: env, name: s.name, shown: s.shown}.explain(err)
	}
	d.odd = nil
	out := d.encode([]byte(strings.TrimPrefix(content, d.bom())))
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Interrupted, "%s was not written", s.shown).Because(err)
	}
	if err := env.Files.Replace(s.name, out, o); err != nil {
		return writeFailed(s.shown, err)
	}
	env.Seen.Record(s.name, workspace.FingerprintOf(out))
	return nil
}
