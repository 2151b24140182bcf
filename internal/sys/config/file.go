package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

// readConfig reads a file that may be missing. The error does not contain the path.
func readConfig(path string) (data []byte, exists bool, err error) {
	data, err = workspace.ReadFile(path, maxFile)
	switch {
	case err == nil:
		return data, true, nil
	case workspace.Absent(err): // with HOME=/dev/null there is no home
		return nil, false, nil
	case errors.Is(err, fault.FieldTooLarge):
		return nil, true, errors.New("the file is larger than 1 MiB")
	case errors.Is(err, fault.Unsafe):
		return nil, true, errors.New("it is not a regular file")
	case errors.Is(err, fault.PermissionDenied):
		return nil, true, errors.New("the system does not allow to read it")
	case errors.Is(err, fault.SymlinkLoop):
		return nil, true, errors.New("its symbolic links lead in a circle")
	}
	return nil, true, fmt.Errorf("it cannot be read: %w", err)
}

// fileLayers returns the two layers of a file: the chosen context above the rest. A context of the user file is below
// the project file, because layers come before contexts.
func (l *loader) fileLayers(f file) []layer {
	plain, overlay := layer{}, layer{}
	for _, m := range f.tree.Members {
		if m.Key == contextTable {
			l.contexts(f.path, m, overlay)
		} else {
			l.walk(f.path, nil, m, plain)
		}
	}
	if f.project {
		l.withhold(f.path, overlay, plain)
	}
	return []layer{overlay, plain}
}

// withhold removes from a project's layers what a project may not set.
func (l *loader) withhold(path string, layers ...layer) {
	var warnings []Warning
	for _, key := range l.options.Keys {
		for _, of := range layers {
			v, ok := of[key.Name]
			if !ok || !key.Personal {
				continue
			}
			delete(of, key.Name)
			warnings = append(warnings, Warning{
				Code: PersonalKey, Line: v.Pos.Line, Col: v.Pos.Col,
				Message: fmt.Sprintf(
					"%s:%v: %s does not count here, trusted or not: it belongs into your own configuration", path,
					v.Pos, key.Name),
			})
		}
	}
	slices.SortFunc(warnings, func(a, b Warning) int { return cmp.Or(a.Line-b.Line, a.Col-b.Col) })
	for _, w := range warnings {
		l.warn(w)
	}
}

// contexts checks every context, so that mistakes show before a context is used, and keeps the chosen one.
func (l *loader) contexts(path string, contexts literal.Member, chosen layer) {
	if contexts.Value.Kind != literal.Object {
		l.fail(path, contexts.Value.Pos, "context must be a table of tables: [context.NAME]")
		return
	}
	for _, c := range contexts.Value.Members {
		if c.Value.Kind != literal.Object {
			l.fail(path, c.Value.Pos, "a context must be a table: [context.NAME]")
			continue
		}
		into := layer{}
		if c.Key == l.set.context {
			into = chosen
		}
		for _, m := range c.Value.Members {
			l.walk(path, nil, m, into)
		}
	}
}

// walk reads a key, or the keys of a table that leads to known keys.
func (l *loader) walk(path string, above []string, m literal.Member, into layer) {
	here := append(slices.Clone(above), m.Key)
	name := strings.Join(here, ".")
	key, known := findKey(l.options.Keys, name)
	known = known && !strings.Contains(m.Key, ".") // "a.b" in quotes is not a.b
	switch {
	case known:
		raw, err := key.fromLiteral(m.Value)
		if err != nil {
			l.problems.value(path, m.Value, key, err)
			return
		}
		source := fmt.Sprintf("file:%s:%v", path, m.Value.Pos)
		into[name] = Value{Raw: raw, Text: showRaw(raw, m.Value.Str), Source: source, File: path, Pos: m.Value.Pos}
	case m.Value.Kind == literal.Object && l.leadsToKeys(name):
		for _, inner := range m.Value.Members {
			l.walk(path, here, inner, into)
		}
	case name == contextKeyName && len(above) == 0:
		if m.Value.Kind != literal.String {
			l.fail(path, m.Value.Pos, contextKeyName+" must be a string, not a "+m.Value.Kind.String())
		}
	default:
		message, _ := unknownKey(name, l.options.Keys)
		if _, quoted := findKey(l.options.Keys, name); quoted {
			message = "there is no key " + quote(name) + "; write it without quotes"
		}
		l.warn(Warning{
			Code: UnknownConfigKey, Line: m.KeyPos.Line, Col: m.KeyPos.Col,
			Message: fmt.Sprintf("%s:%v: %s", path, m.KeyPos, message),
		})
	}
}

func (l *loader) leadsToKeys(table string) bool {
	_, leads := firstIn(l.options.Keys, table)
	return leads
}

// firstIn returns the first key of a table.
func firstIn(keys []Key, table string) (first string, ok bool) {
	for _, k := range keys {
		if strings.HasPrefix(k.Name, table+".") {
			return k.Name, true
		}
	}
	return "", false
}

// unknownKey tells that there is no key of that name, and returns the one that may be meant, or "".
func unknownKey(name string, keys []Key) (message, near string) {
	if first, ok := firstIn(keys, name); ok {
		return quote(name) + " is a table of keys, such as " + first, ""
	}
	message = "there is no key " + quote(name)
	if near = text.Nearest(name, keyNames(keys)); near != "" {
		message += "; did you mean " + near + "?"
	}
	return message, near
}
