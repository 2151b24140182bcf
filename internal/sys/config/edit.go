package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/workspace"
)

// Edit is one change of one file.
type Edit struct {
	File    string // absolute
	Key     string // a name in Keys, current_context, or context.NAME.KEY for one context
	Keys    []Key
	Value   string        // for Write
	LockDir string        // directory of the lock file; "" = that of the file
	Wait    time.Duration // how long to wait for another process; 0 = do not wait

	// Of a project file:
	Root  string // the file must be below it after following all links; "" = not a project file
	Trust *Trust // trusts the new content if the file was absent or trusted before; nil = leaves the trust unchanged
}

// Write sets the key and returns its old value as text, "" if it was unset. An equal value writes nothing. The file and
// its directory are created if needed, private to the user. After an error with changed = true, the file has the new
// value and only the trust could not be recorded.
func Write(ctx context.Context, e Edit) (old string, changed bool, err error) {
	path, key, err := e.resolve()
	if err != nil {
		return "", false, err
	}
	value, err := key.tomlValue(e.Value)
	if err != nil {
		return "", false, wrongValue(key, e.Value, err)
	}
	if err := workspace.MkdirAll(filepath.Dir(e.File)); err != nil {
		return "", false, err
	}
	return e.apply(ctx, path, key, func(data []byte) ([]byte, error) { return literal.SetTOML(data, path, value) })
}

// Remove removes the key. A missing key is not an error.
func Remove(ctx context.Context, e Edit) (old string, changed bool, err error) {
	path, key, err := e.resolve()
	if err != nil {
		return "", false, err
	}
	if _, exists, err := readConfig(e.File); err == nil && !exists {
		return "", false, nil
	}
	return e.apply(ctx, path, key, func(data []byte) ([]byte, error) {
		out, _, err := literal.UnsetTOML(data, path)
		return out, err
	})
}

// Check validates an edit without reading the file: that the key exists and, with value, that the value is valid.
func Check(e Edit, value bool) error {
	_, key, err := e.resolve()
	if err != nil || !value {
		return err
	}
	if key.Personal && e.Root != "" {
		f := fault.New(fault.ArgError, "%s counts only in your own file: add --global", key.Name)
		return about("key", key.Name, f.Hint("omniagent config set %s --global", text.Shell(key.Name, e.Value)))
	}
	raw, err := key.tomlValue(e.Value)
	if err != nil {
		return wrongValue(key, e.Value, err)
	}
	list, _ := raw.([]string)
	for _, one := range list {
		if key.Valid == nil {
			break
		}
		if err := key.Valid(one); err != nil {
			return about("value", one, fault.Of(err))
		}
	}
	return nil
}

// about makes a fault the only problem of a parameter.
func about(param, value string, f *fault.Fault) error {
	f.Problems = []fault.Problem{{Param: param, Code: f.Code, Message: f.Message, Value: value, Fault: f}}
	return f
}

// Peek returns the value of the key in the file, or "".
func Peek(e Edit) (string, error) {
	path, key, err := e.resolve()
	if err != nil {
		return "", err
	}
	data, _, err := readConfig(e.File)
	if err == nil {
		_, err = literal.ParseTOML(data)
	}
	if err != nil {
		return "", invalid(e.File, err)
	}
	return oldText(data, path, key), nil
}

// resolve returns the key's place in the file.
func (e Edit) resolve() (path []string, key Key, err error) {
	if key, ok := findKey(e.Keys, e.Key); ok {
		return strings.Split(e.Key, "."), key, nil
	}
	if e.Key == contextKeyName {
		return []string{contextKeyName}, Key{Name: contextKeyName}, nil
	}
	if rest, ok := strings.CutPrefix(e.Key, contextTable+"."); ok {
		var context string
		for _, k := range e.Keys { // the longest name that fits leaves the shortest context
			if name, ok := strings.CutSuffix(rest, "."+k.Name); ok && name != "" && len(k.Name) > len(key.Name) {
				context, key = name, k
			}
		}
		if context != "" {
			return append([]string{contextTable, context}, strings.Split(key.Name, ".")...), key, nil
		}
	}
	message, near := unknownKey(e.Key, e.Keys)
	f := fault.New(fault.ConfigKeyUnknown, "%s", message).With("key", e.Key).
		Hint("omniagent config list shows all keys")
	if near != "" {
		f.With("did_you_mean", near)
	}
	return nil, Key{}, f
}

func wrongValue(key Key, text string, err error) error {
	return &fault.Fault{
		Code: fault.ArgError, Message: key.Name + " " + err.Error(), Suggestion: key.Name + " is " +
			key.Type.description(key.Enum),
		Detail: map[string]any{"key": key.Name},
		Problems: []fault.Problem{{
			Param: "value", Code: fault.ArgError, Message: key.Name + " " + err.Error(),
			Value: text, Corrected: key.corrected(text),
		}},
	}
}

// apply reads, edits and writes under the lock.
func (e Edit) apply(ctx context.Context, path []string, key Key, edit func([]byte) ([]byte, error)) (string, bool,
	error,
) {
	lock, err := e.lockFile()
	if err != nil {
		return "", false, err
	}
	held, err := workspace.Lock(ctx, lock, e.Wait)
	if err != nil {
		return "", false, busy(e.File, err)
	}
	defer held.Unlock()
	if e.Root != "" && leavesRoot(e.File, e.Root) {
		return "", false, fault.New(fault.Unsafe, "%s is a link that leads out of the project", e.File).With("path",
			e.File).
			Hint("Put a file in its place: rm %s", e.File)
	}
	if e.Trust != nil {
		e.Trust.refresh() // the previous holder of the lock may have changed both
	}
	data, exists, err := readConfig(e.File)
	if err != nil {
		return "", false, invalid(e.File, err)
	}
	out, err := edit(data)
	if err != nil {
		return "", false, editFailed(e.File, err)
	}
	old := oldText(data, path, key)
	if bytes.Equal(out, data) {
		return old, false, nil
	}
	if len(out) > maxFile {
		return "", false, invalid(e.File, errors.New("the file would be larger than 1 MiB"))
	}
	trusted := e.Trust != nil && (!exists || e.Trust.Trusted(e.File, data))
	if err := workspace.WriteFile(e.File, out, 0o600); err != nil {
		return "", false, err
	}
	if trusted {
		if err := e.Trust.Add(e.File, out); err != nil {
			return old, true, err
		}
	}
	return old, true, nil
}

// lockFile returns one name for one file, whichever links lead to it.
func (e Edit) lockFile() (string, error) {
	real := pathname.Real(e.File)
	if e.LockDir == "" {
		return real + ".lock", nil
	}
	if err := workspace.MkdirAll(e.LockDir); err != nil {
		return "", err
	}
	return filepath.Join(e.LockDir, fmt.Sprintf("config-%s.lock", hashOf([]byte(real))[:16])), nil
}

// oldText returns the old value, in the key's notation if possible.
func oldText(data []byte, path []string, key Key) string {
	tree, err := literal.ParseTOML(data)
	if err != nil {
		return ""
	}
	v, ok := tree.Lookup(path...)
	if !ok {
		return ""
	}
	if raw, err := key.fromLiteral(v); err == nil {
		return showRaw(raw, v.Str)
	}
	return string(v.JSON())
}
