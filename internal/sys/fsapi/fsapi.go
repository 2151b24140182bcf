// Package fsapi is the access that the routes of seed 2, and commands that a person types in a conversation, have to
// the system: files below one root, and commands in it.
//
// It promises: a path that leads out of the root, by its name or through a link, is refused before anything is touched;
// a command on the list of blocked ones is refused before anything runs; and an error has one of five codes. It is not
// a sandbox: workspace.Dir and the runner of commands, which it is given, enforce their limits themselves.
package fsapi

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

// FS is the interface.
type FS interface {
	// Resolve returns the absolute path of a file, which need not exist.
	Resolve(path string) (string, error)
	// ReadFile returns a part of a text.
	ReadFile(path string, w Window) (string, error)
	// WriteFile writes a file, and makes missing directories.
	WriteFile(path, content string, mode Mode) (Change, error)
	// EditText changes a part of a text.
	EditText(path string, e Edit) (Change, error)
	// ListDir lists a directory, sorted by name.
	ListDir(path string) ([]Entry, error)
	// RunCommand runs a command to its end. A command that fails has an Output; an error means that it was not started.
	RunCommand(ctx context.Context, c Command) (Output, error)
}

// Code is the kind of an error. It is an error itself, for errors.Is.
type Code string

// The codes.
const (
	OutsideWorkspace Code = "OutsideWorkspace"
	InvalidPath      Code = "InvalidPath" // also any other argument that is wrong
	CommandBlocked   Code = "CommandBlocked"
	NotFound         Code = "NotFound"
	IOError          Code = "IOError"
)

func (c Code) Error() string { return string(c) }

// Error is the error of every method.
type Error struct {
	Code    Code
	Message string
	Path    string
	Cause   error
}

func (e *Error) Error() string {
	message := e.Message
	if e.Path != "" {
		message += " (" + e.Path + ")"
	}
	if e.Cause != nil {
		message += ": " + e.Cause.Error()
	}
	return message
}

// Is reports whether target is the code.
func (e *Error) Is(target error) bool { return target == error(e.Code) } //nolint:errorlint // a code wraps nothing

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Entry is one name in a directory.
type Entry struct {
	Name string
	Dir  bool
}

// Command is a command for RunCommand.
type Command struct {
	Line    string
	At      string        // where it has to begin, relative to the root; empty: anywhere
	Timeout time.Duration // 0: the runner's own
	Network bool          // a person has opened the network for it
}

// Output is what a command left.
type Output struct {
	Stdout, Stderr string
	ExitCode       int    // -1 if it did not end by itself
	Ended          string // how it ended then, such as "timed out after 30s"
	Masked         int    // secrets that were removed from the output
}

// Run runs a command that was checked.
type Run func(ctx context.Context, c Command) (Output, error)

// Local is FS on this machine.
type Local struct {
	files *workspace.Dir
	run   Run
}

var _ FS = (*Local)(nil)

// New returns an FS of a directory. run may be nil; then there are no commands.
func New(files *workspace.Dir, run Run) *Local { return &Local{files, run} }

// Resolve returns the absolute path of a file, which need not exist. Links are followed only within the root.
func (l *Local) Resolve(path string) (string, error) {
	name, err := l.name(path)
	if err != nil {
		return "", err
	}
	if local := filepath.FromSlash(name); filepath.IsAbs(local) {
		return local, nil
	}
	return filepath.Join(l.files.Path(), filepath.FromSlash(name)), nil
}

// name returns the name of a path below the root.
func (l *Local) name(path string) (string, error) {
	if strings.TrimSpace(path) == "" {
		return "", &Error{Code: InvalidPath, Message: "Path is required"}
	}
	name, err := l.files.Name(path)
	if err == nil {
		_, err = l.files.Resolve(name)
	}
	if err != nil {
		return "", explained(path, err)
	}
	return name, nil
}

// ListDir lists a directory.
func (l *Local) ListDir(path string) ([]Entry, error) {
	name, err := l.name(path)
	if err != nil {
		return nil, err
	}
	found, _, err := l.files.ReadDir(name, 0)
	if err != nil {
		return nil, explained(path, err)
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Name: e.Name(), Dir: e.IsDir()}
	}
	return entries, nil
}

// RunCommand checks a command and runs it.
func (l *Local) RunCommand(ctx context.Context, c Command) (Output, error) {
	line, err := CheckCommand(c.Line)
	if err != nil {
		return Output{}, err
	}
	if l.run == nil {
		return Output{}, &Error{Code: IOError, Message: "Commands cannot be run here"}
	}
	c.Line = line
	out, err := l.run(ctx, c)
	if err != nil {
		return out, &Error{Code: IOError, Message: "Command not started", Cause: err}
	}
	return out, nil
}

// explained gives an error of the workspace one of the five codes.
func explained(path string, err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return &Error{Code: IOError, Message: "Input or output failed", Path: path, Cause: err}
	}
	switch reason, _ := f.Detail["reason"].(string); {
	case workspace.Outside(err):
		return &Error{Code: OutsideWorkspace, Message: "Path escapes workspace", Path: path}
	case reason == "invalid" && errors.Is(err, fault.ArgError):
		return &Error{Code: InvalidPath, Message: "Path is not valid", Path: path}
	case errors.Is(err, fault.FileMissing):
		return &Error{Code: NotFound, Message: "File not found", Path: path}
	}
	return &Error{Code: IOError, Message: f.Message, Path: path}
}
