// Package config resolves the configuration and says where each value comes from.
//
// The layers are, highest first: flag, environment, project file, user file, default. Every value carries its source,
// down to line and column, and what it hides. All errors are reported at once, and the valid layers remain usable, so
// that the commands that explain a broken configuration still run. A file is changed under a lock, atomically, and only
// in one value.
//
// A project file counts only while its exact content is trusted at its exact path. The package refuses files that are
// not regular or larger than 1 MiB, and never repairs or rewrites a file that it cannot read.
package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

// The codes of warnings.
const (
	UntrustedConfig  = "UNTRUSTED_CONFIG"
	UnknownConfigKey = "UNKNOWN_CONFIG_KEY"
	UnusableTrust    = "UNUSABLE_TRUST_FILE"
	PersonalKey      = "PERSONAL_CONFIG_KEY"
)

const (
	maxFile        = 1 << 20
	contextTable   = "context"
	contextKeyName = "current_context"
)

// Options says which layers there are.
type Options struct {
	Keys      []Key
	Getenv    func(string) (string, bool) // os.LookupEnv; a variable that is empty counts as not set
	Dir       string                      // effective working directory, absolute
	UserFile  string                      // "" when there is no home
	TrustFile string                      // where trust is recorded, "" when nowhere
	Explicit  string                      // the only file to read, if set
	None      bool                        // read no file at all; overrides Explicit
	Unchecked bool                        // there need be no context of the name
	Context   string                      // overrides current_context
	Overrides map[string]string           // by name of key, from flags: the highest layer
}

// Warning is a message that stops nothing. Line and Col are 0 if there is no place.
type Warning struct {
	Code    string
	Message string
	Line    int
	Col     int
}

// Load reads all layers. The Set is usable even with an error, which is then a fault.ConfigInvalid that names
// everything that is wrong: the invalid parts are left out, and the next lower layer applies.
func Load(o Options) (*Set, error) {
	l := &loader{options: o, set: &Set{keys: o.Keys}}
	if l.options.Getenv == nil {
		l.options.Getenv = func(string) (string, bool) { return "", false }
	}
	files := l.files()
	l.chooseContext(files)
	layers := []layer{l.flags(), l.environment()}
	for _, f := range files {
		layers = append(layers, l.fileLayers(f)...)
	}
	layers = append(layers, l.defaults())
	l.set.resolve(layers)
	return l.set, l.problems.fault()
}

type loader struct {
	options    Options
	set        *Set
	problems   problems
	unreadable bool // a file could not be read, so its definitions are unknown
}

// layer is what one source sets.
type layer map[string]Value

// file is a file that counts.
type file struct {
	path    string
	tree    literal.Value
	project bool
}

// files returns the files that count, highest first.
func (l *loader) files() []file {
	o := l.options
	l.findProject()
	var files []file
	add := func(path string, required bool) {
		data, exists, err := readConfig(path)
		switch {
		case err != nil:
			l.fail(path, literal.Pos{}, err.Error())
		case exists:
			files = l.count(files, file{path: path}, data)
		case required:
			l.unreadable = true
			l.problems.inFile(path, literal.Pos{}, "the file does not exist", "").
				Hint("Give --config an existing file, or leave it out.")
		}
	}
	switch {
	case o.None:
	case o.Explicit != "":
		add(pathname.From(o.Dir, o.Explicit), true)
	default:
		if data, ok := l.trustedProject(); ok {
			files = l.count(files, file{path: l.set.projectFile, project: true}, data)
		}
		if o.UserFile != "" {
			add(o.UserFile, false)
		}
	}
	return files
}

// fail notes an error in a file. Its other layers still count.
func (l *loader) fail(path string, pos literal.Pos, message string) {
	l.unreadable = l.unreadable || pos.Line == 0
	l.problems.inFile(path, pos, message, "")
}

func (l *loader) count(files []file, f file, data []byte) []file {
	var err error
	if f.tree, err = literal.ParseTOML(data); err != nil {
		l.unreadable = true
		l.problems.syntax(f.path, err)
		return files
	}
	l.set.sources = append(l.set.sources, f.path)
	return append(files, f)
}

func (l *loader) warn(w Warning) { l.set.warnings = append(l.set.warnings, w) }

func (l *loader) flags() layer {
	out := layer{}
	for _, name := range slices.Sorted(maps.Keys(l.options.Overrides)) {
		written := l.options.Overrides[name]
		key, ok := findKey(l.options.Keys, name)
		if !ok {
			if name != contextKeyName {
				message, near := unknownKey(name, l.options.Keys)
				l.problems.add(fault.Problem{
					Param: name, Code: fault.ConfigKeyUnknown, Value: written, Message: message, Corrected: near,
				})
			}
			continue
		}
		l.parse(out, key, written, "flag:", key.flag())
	}
	return out
}

func (l *loader) environment() layer {
	out := layer{}
	for _, key := range l.options.Keys {
		if key.Env == "" {
			continue
		}
		if text, ok := l.options.Getenv(key.Env); ok && text != "" {
			l.parse(out, key, text, "env:", key.Env)
		}
	}
	return out
}

// parse adds a value that a flag or a variable has as text.
func (l *loader) parse(to layer, key Key, text, kind, name string) {
	raw, err := key.parse(text)
	if err != nil {
		l.problems.atSource(key, name, text, err)
		return
	}
	to[key.Name] = Value{Raw: raw, Text: showRaw(raw, text), Source: kind + name}
}

func (l *loader) defaults() layer {
	out := layer{}
	for _, key := range l.options.Keys {
		if key.Default == "" {
			continue
		}
		raw, err := key.parse(key.Default)
		if err != nil {
			l.problems.add(fault.Problem{
				Param: key.Name, Code: fault.Internal, Value: key.Default,
				Message: "the default of " + key.Name + " is wrong: " + err.Error(),
			})
			continue
		}
		out[key.Name] = Value{Raw: raw, Text: showRaw(raw, key.Default), Source: "default"}
	}
	return out
}

// chooseContext selects a [context.NAME] and checks that it exists.
func (l *loader) chooseContext(files []file) {
	var available []string
	name, origin, in := cmp.Or(l.options.Context, l.options.Overrides[contextKeyName]), "--context", Value{}
	if key, ok := findKey(l.options.Keys, contextKeyName); ok && name == "" && key.Env != "" {
		name, _ = l.options.Getenv(key.Env)
		origin = key.Env
	}
	for _, f := range files {
		if v, ok := f.tree.Lookup(contextKeyName); ok && name == "" && v.Kind == literal.String {
			name, origin, in = v.Str, contextKeyName, Value{File: f.path, Pos: v.Pos}
		}
		contexts, _ := f.tree.Lookup(contextTable)
		for _, m := range contexts.Members {
			if m.Value.Kind == literal.Object && !slices.Contains(available, m.Key) {
				available = append(available, m.Key)
			}
		}
	}
	if name == "" || l.options.Unchecked || slices.Contains(available, name) {
		l.set.context = name
		return
	}
	if l.unreadable {
		return // it may be in the file that could not be read, which is reported already
	}
	slices.Sort(available)
	there := "there is none"
	if len(available) > 0 {
		there = "there is: " + strings.Join(available, ", ")
	}
	l.problems.context(origin, name, in, "there is no context "+quote(name)+"; "+there, text.Nearest(name, available))
}
