package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/walls/guard"
	"omniagent/internal/wire/claude"
)

// A host of Claude Code has settings in flags, in files and in its initialize request. Each source is read into a
// Delta, and With merges them into the request to open a conversation. A limit is enforced or refused, and no source
// allows what another has forbidden.

// HostSettings holds the settings of such a host that are not part of the request.
type HostSettings struct {
	Unasked  bool // questions are denied
	NoBypass bool // forbids Terms.Bypass, whatever another source says
}

// ReadSettings reads Claude Code's settings that the host passed.
func ReadSettings(from string, data []byte) (claude.Delta, error) {
	d, err := claude.ReadSettings(from, data)
	if err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return d, fault.New(fault.ArgError, "%s: %v", from, err).
				Hint("give the settings as an object of JSON, or the name of a file that has them")
		}
		return d, fault.New(fault.Unsupported, "%s: %v", from, err)
	}
	return d, nil
}

// Files locates and reads files.
type Files struct {
	Config string // Claude Code's own directory
	Dir    string // where the agent works
	Read   func(path string) ([]byte, error)
}

// Source reads the settings file of a source: user, project or local. A missing file changes nothing. The host did not
// pass its content, so only what it forbids counts.
func Source(name string, f Files) (claude.Delta, error) {
	path := map[string]string{
		"user": filepath.Join(f.Config, "settings.json"), "project": filepath.Join(f.Dir, ".claude", "settings.json"),
		"local": filepath.Join(f.Dir, ".claude", "settings.local.json"),
	}[name]
	data, err := f.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return claude.Delta{}, nil
	case err != nil:
		return claude.Delta{}, fault.New(fault.Unsupported,
			"--setting-sources %s: %s cannot be read, and may forbid something", name, path).
			Because(err)
	}
	d, err := ReadSettings("--setting-sources "+name, data)
	return d.Stricter(), err
}

// Object returns a value that is a JSON object, or the content of a file with one.
func (f Files) Object(from, value string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(value), "{") {
		return []byte(value), nil
	}
	data, err := f.Read(pathname.From(f.Dir, value))
	if err != nil {
		return nil, fault.New(fault.ArgError, "%s is neither a JSON object nor a file that can be read", from).
			Because(err).Hint("check the path; relative paths start at --cwd")
	}
	return data, nil
}

// Initialize reads the host's initialize request: its own members, and its settings.
func Initialize(i claude.Initialize, f Files) ([]claude.Delta, error) {
	if i.Refused != nil {
		return nil, fault.New(fault.Unsupported, "%v", i.Refused)
	}
	if i.Settings == nil {
		return []claude.Delta{i.Delta}, nil
	}
	data := i.Settings
	var path string
	if json.Unmarshal(data, &path) == nil {
		var err error
		if data, err = f.Object("initialize: settings", path); err != nil {
			return nil, err
		}
	}
	more, err := ReadSettings("initialize", data)
	return []claude.Delta{i.Delta, more}, err
}

// Servers reads a file of MCP servers.
func Servers(from string, data []byte) (claude.Delta, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil || file["mcpServers"] == nil {
		return claude.Delta{}, fault.New(fault.ArgError, "%s is not a JSON object with mcpServers", from)
	}
	return claude.Delta{From: from, Servers: []json.RawMessage{file["mcpServers"]}}, nil
}

// Helpers reads sub-agents by name.
func Helpers(from string, data []byte) (claude.Delta, error) {
	helpers, err := claude.ReadHelpers(data)
	if err != nil {
		return claude.Delta{}, fault.New(fault.ArgError, "--%v", err)
	}
	return claude.Delta{From: from, Helpers: helpers}, nil
}

// With returns the request with the changes of the sources, in order.
func With(r launch.Request, say HostSettings, deltas ...claude.Delta) (launch.Request, HostSettings, error) {
	var err error
	for _, d := range deltas {
		if r, say, err = with(r, say, d); err != nil {
			return r, say, err
		}
	}
	return r, say, nil
}

func with(r launch.Request, say HostSettings, d claude.Delta) (launch.Request, HostSettings, error) {
	t := &r.Spec.Terms
	t.Allow, t.Deny, r.Ask = slices.Concat(t.Allow, d.Allow), slices.Concat(t.Deny, d.Deny), slices.Concat(r.Ask, d.Ask)
	t.Helpers, t.Dirs = slices.Concat(t.Helpers, d.Helpers), slices.Clone(t.Dirs)
	for _, dir := range d.Dirs {
		t.Dirs = append(t.Dirs, filepath.Clean(pathname.From(r.Spec.Dir, dir)))
	}
	if d.Mode != nil && !r.Mode { // a typed mode has precedence
		t.Mode, say.Unasked, t.Bypass = d.Mode.Mode, d.Mode.Unasked, t.Bypass || d.Mode.Mode == setting.Yolo
	}
	if say.NoBypass = say.NoBypass || d.NoBypass; say.NoBypass {
		if t.Bypass = false; t.Mode == setting.Yolo {
			return r, say, fault.New(
				fault.Unsupported,
				"%s forbids the permission mode bypassPermissions, which was chosen",
				d.From,
			)
		}
	}
	if d.Walls {
		r.Spec.Shared.Sandbox = setting.AsTyped(setting.WorkspaceWrite)
	}
	if d.Hosts != nil && t.Network != "off" { // a flag that denies the network has precedence
		if t.Network = strings.Join(d.Hosts, ","); len(d.Hosts) == 0 {
			t.Network = "off"
		}
	}
	if d.Model != "" && r.Spec.Shared.Model.Value == "" {
		r.Spec.Shared.Model = setting.AsTyped(d.Model)
	}
	if d.System != "" {
		t.System = d.System
	}
	if d.Append != "" {
		t.Append = d.Append
	}
	if d.Schema != nil {
		r.Spec.Schema = d.Schema
	}
	var err error
	t.Servers, err = merged(t.Servers, d.Servers)
	return r, say, err
}

// merged adds MCP servers to others. A later one replaces an earlier one with the same name.
func merged(servers []byte, more []json.RawMessage) ([]byte, error) {
	all := map[string]json.RawMessage{}
	for _, data := range append([]json.RawMessage{servers}, more...) {
		var some map[string]json.RawMessage
		if len(data) == 0 {
			continue
		}
		if err := json.Unmarshal(data, &some); err != nil {
			return nil, fault.New(fault.ArgError, "mcpServers is not an object of servers by name")
		}
		maps.Copy(all, some)
	}
	if len(all) == 0 {
		return servers, nil
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fault.New(fault.Internal, "the MCP servers cannot be put together").Because(err)
	}
	return data, nil
}

// Native translates the names of Claude Code's tools in the request to those of the native agent, and returns notes for
// people. A tool that does not exist here is neither denied nor allowed.
func Native(r launch.Request, tools guard.Known) (_ launch.Request, notes []string) {
	known := func(rule string) bool { _, err := tools.Rule(guard.Deny, rule, ""); return err == nil }
	t := &r.Spec.Terms
	var without []string
	t.Allow, without = claude.OurRules(t.Allow, known)
	for _, rule := range without {
		notes = append(notes, rule+" allows nothing: there is no such tool here")
	}
	t.Deny, _ = claude.OurRules(t.Deny, known)
	r.Ask, _ = claude.OurRules(r.Ask, known)
	if t.Tools == nil {
		return r, notes
	}
	t.Tools, without = claude.OurRules(t.Tools, known)
	for _, rule := range without {
		notes = append(notes, "there is no tool "+rule+" here")
	}
	if t.Tools == nil {
		t.Tools = []string{}
	}
	return r, notes
}

// Compact returns a JSON object without white space.
func Compact(from, object string) ([]byte, error) {
	var members map[string]json.RawMessage
	var b bytes.Buffer
	if err := json.Unmarshal([]byte(object), &members); err != nil || members == nil ||
		json.Compact(&b, []byte(object)) != nil {
		return nil, fault.New(fault.ArgError, "%s is not a JSON object", from).
			Hint(`give the object itself, not a file: %s '{"type":"object"}', or %[1]s "$(cat FILE)"`, from)
	}
	return b.Bytes(), nil
}
