package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/workspace"
)

const maxConfig = 1 << 20

// ReadServers reads a file of servers in Claude's format, and expands environment variables in it. The file must be the
// user's own, because its commands are run. problems are about single servers, which are left out. A missing file has
// no servers.
func ReadServers(path string, lookup func(string) (string, bool)) (servers []Server, problems []error, err error) {
	data, err := workspace.ReadFile(path, maxConfig)
	if errors.Is(err, fault.FileMissing) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	servers, problems, err = parseServers(data, lookup)
	if err != nil {
		err = fault.New(fault.ConfigInvalid, "%s has no readable servers", path).Because(err).
			Hint(`It must look like {"mcpServers": {"NAME": {"command": "…", "args": []}}}.`)
	}
	return servers, problems, err
}

// Entry is a server in Claude's format.
type Entry struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Timeout  float64           `json:"timeout"` // ms
	Disabled bool              `json:"disabled"`
}

// Entries returns the servers of a host unparsed, from the object mcpServers, or an object that contains only that.
func Entries(data []byte) (all map[string]json.RawMessage, err error) {
	if err = json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	if inner, wrapped := all["mcpServers"]; wrapped && len(all) == 1 {
		all = nil
		err = json.Unmarshal(inner, &all)
	}
	return all, err
}

// ParseHosted reads the servers of a host. Servers of type sdk are part of the host.
func ParseHosted(data []byte, lookup func(string) (string, bool)) (servers []Server, problems []error, err error) {
	all, err := Entries(data)
	servers, problems = parse(all, lookup, true)
	return servers, problems, err
}

// parseServers reads the content of a file of servers. The servers are sorted by name.
func parseServers(data []byte, lookup func(string) (string, bool)) (servers []Server, problems []error, err error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err = json.Unmarshal(data, &file); err == nil {
		servers, problems = parse(file.Servers, lookup, false)
	}
	return servers, problems, err
}

func parse(all map[string]json.RawMessage, lookup func(string) (string, bool), host bool) (servers []Server,
	problems []error,
) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var e Entry
		if err := json.Unmarshal(all[name], &e); err != nil {
			problems = append(problems, wrong(name, "cannot be read: %v", err))
			continue
		}
		if e.Disabled {
			continue
		}
		if host && e.Type == "sdk" && name != "" {
			servers = append(servers, Server{Name: name, Hosted: true})
			continue
		}
		s, err := e.server(name, lookup)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		servers = append(servers, s)
	}
	return servers, problems
}

func wrong(name, format string, args ...any) *fault.Fault {
	return fault.New(fault.ConfigInvalid, "the MCP server %s %s", name, fmt.Sprintf(format, args...)).
		Hint("Correct its entry in mcpServers.").With("server", name)
}

func (e Entry) server(name string, lookup func(string) (string, bool)) (Server, error) {
	x := expander{lookup: lookup}
	s := Server{Name: name, Dir: x.expand(e.Cwd), URL: x.expand(e.URL), Env: x.all(e.Env), Header: x.all(e.Headers)}
	if e.Timeout > 0 {
		s.Call = time.Duration(min(e.Timeout, 1e9)) * time.Millisecond
	}
	if e.Command != "" {
		s.Command = []string{x.expand(e.Command)}
		for _, arg := range e.Args {
			s.Command = append(s.Command, x.expand(arg))
		}
	}
	switch kind := strings.ToLower(e.Type); {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return s, wrong(fmt.Sprintf("%q", name), "has no name that can be used")
	case len(x.missing) > 0:
		return s, wrong(name, "needs %s in the environment",
			strings.Join(x.missing, ", ")).Hint("Set it, or write ${%s:-something}.", x.missing[0])
	case kind == "sse":
		return s, wrong(name, "is of the type sse, which is not supported").Hint(
			`Most such servers have an address for "type": "http" too.`)
	case kind != "" && !slices.Contains([]string{"stdio", "http", "streamable-http", "streamablehttp"}, kind):
		return s, wrong(name, "is of the type %q, which is not known", e.Type)
	case kind == "stdio" && e.Command == "", kind != "stdio" && kind != "" && e.URL == "":
		return s, wrong(name, "is of the type %s and lacks what that needs", kind)
	case (e.Command == "") == (e.URL == ""):
		return s, wrong(name, "must have either a command or a url")
	case strings.ContainsAny(strings.Join(append(slices.Clone(s.Command), s.Dir), ""), "\x00"):
		return s, wrong(name, "has a NUL in its command")
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) { // it would be another one in each workspace
		return s, wrong(name, "has a cwd that is not absolute: %q", s.Dir)
	}
	for header, value := range s.Header {
		if header == "" || strings.ContainsAny(header, " :\r\n") || strings.ContainsAny(value, "\r\n\x00") {
			return s, wrong(name, "has a header that cannot be sent: %q", header)
		}
	}
	for variable := range s.Env {
		if variable == "" || strings.ContainsAny(variable, "=\x00") {
			return s, wrong(name, "has a variable that cannot be: %q", variable)
		}
	}
	return s, nil
}

// expander expands ${NAME} and ${NAME:-default}. It expands neither a bare $NAME nor the values.
type expander struct {
	lookup  func(string) (string, bool)
	missing []string
}

func (x *expander) all(m map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out[name] = x.expand(m[name])
	}
	return out
}

func (x *expander) expand(s string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		inside, after, closed := strings.Cut(rest, "}")
		name, otherwise, has := strings.Cut(inside, ":-")
		if !closed || !isName(name) {
			b.WriteString("${")
			s = rest
			continue
		}
		s = after
		value, ok := "", false
		if x.lookup != nil {
			value, ok = x.lookup(name)
		}
		switch {
		case ok && (value != "" || !has):
			b.WriteString(value)
		case has:
			b.WriteString(otherwise)
		case !slices.Contains(x.missing, name):
			x.missing = append(x.missing, name)
		}
	}
}

func isName(s string) bool {
	for i, r := range s {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}
