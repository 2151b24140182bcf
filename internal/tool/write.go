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
			name, err := env.Files.Name(written)
			if err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Write, Changes: true, Paths: []string{name}, Title: "Write " + written, Input: in.json(),
				Run: func(ctx context.Context, _ func(string)) Result {
					if err := writeWhole(ctx, env, name, written, content); err != nil {
						return failed(err)
					}
					return Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(content), written)}
				},
			}, nil
		},
	}
}

func writeWhole(ctx context.Context, env *Env, name, written, content string) error {
	var d document
	var o workspace.ReplaceOptions
	old, print, err := env.Files.Load(name, largestFile)
	switch {
	case err == nil:
		if err := env.Seen.check(name, written, print); err != nil {
			return err
		}
		if _, seen := env.Seen.Lookup(name); seen {
			o.Expect = &print
		}
		d = decode(old)
	case errors.Is(err, fault.FileMissing):
		o.Expect = &workspace.Fingerprint{} // a file that appears meanwhile is somebody's
	case errors.Is(err, fault.FieldTooLarge), errors.Is(err, fault.PermissionDenied):
		// What is there is not needed, unless it has been seen and was something else then.
		if _, seen := env.Seen.Lookup(name); seen {
			return changed(written)
		}
	default:
		return reader{env: env, name: name, written: written}.explain(err)
	}
	d.odd = nil
	out := d.encode([]byte(strings.TrimPrefix(content, d.bom())))
	if err := ctx.Err(); err != nil {
		return fault.New(fault.Interrupted, "%s was not written", written).Because(err)
	}
	if err := env.Files.Replace(name, out, o); err != nil {
		return writeFailed(written, err)
	}
	env.Seen.Record(name, workspace.FingerprintOf(out))
	return nil
}
