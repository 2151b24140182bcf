package mcp

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
)

func lookup(name string) (string, bool) {
	value, ok := map[string]string{"TOKEN": "t0ken", "EMPTY": "", "NESTED": "${TOKEN}"}[name]
	return value, ok
}

func TestParseServers(t *testing.T) {
	t.Parallel()
	servers, problems, err := parseServers([]byte(`{"other": 1, "mcpServers": {
		"files": {"command": "${HOME_OF:-/opt}/bin/files", "args": ["--key=${TOKEN}", "$TOKEN", "${EMPTY:-other}", "${EMPTY}", "${NESTED}", "a${", "${a b}"],
			"env": {"A": "x${TOKEN}y"}, "cwd": "/w", "timeout": 1500, "alwaysLoad": true},
		"web": {"type": "http", "url": "https://h/mcp?k=${TOKEN}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
		"plain": {"url": "https://h/mcp"},
		"off": {"command": "x", "disabled": true},
		"unset": {"command": "x", "args": ["${NOPE}", "${NOPE}", "${ALSO}"]},
		"sse": {"type": "sse", "url": "https://h"},
		"odd": {"type": "carrier-pigeon", "command": "x"},
		"neither": {},
		"both": {"command": "x", "url": "https://h"},
		"torn": {"command": 7},
		"lacks": {"type": "http", "command": "x"},
		"header": {"url": "https://h", "headers": {"X": "a\nb"}},
		"variable": {"command": "x", "env": {"A=B": "c"}}
	}}`), lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := []Server{
		{
			Name: "files", Command: []string{
				"/opt/bin/files", "--key=t0ken", "$TOKEN", "other", "", "${TOKEN}", "a${",
				"${a b}",
			},
			Env: map[string]string{"A": "xt0keny"}, Header: map[string]string{}, Dir: "/w",
			Call: 1500 * time.Millisecond,
		},
		{Name: "plain", URL: "https://h/mcp", Env: map[string]string{}, Header: map[string]string{}},
		{
			Name: "web", URL: "https://h/mcp?k=t0ken", Env: map[string]string{},
			Header: map[string]string{"Authorization": "Bearer t0ken"},
		},
	}
	if !reflect.DeepEqual(servers, want) {
		t.Errorf("got  %+v\nwant %+v", servers, want)
	}
	var all []string
	for _, p := range problems {
		if !errors.Is(p, fault.ConfigInvalid) || fault.Of(p).Suggestion == "" {
			t.Errorf("%v is not a fault with a hint", p)
		}
		all = append(all, p.Error())
	}
	text := strings.Join(all, "\n")
	for _, part := range []string{
		"unset needs NOPE, ALSO", "sse is of the type sse", "carrier-pigeon", "neither must",
		"both must", "torn cannot be read", "lacks is of", "header has", "variable has",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not told in\n%s", part, text)
		}
	}
	if len(problems) != 9 || strings.Contains(text, "t0ken") {
		t.Errorf("got %s", text)
	}
}

func TestReadServers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mcp.json")
	if s, p, err := ReadServers(path, nil); err != nil || s != nil || p != nil {
		t.Errorf("a missing file: %v %v %v", s, p, err)
	}
	for content, ok := range map[string]bool{
		`{"mcpServers":{"a":{"command":"x"}}}`: true, `{}`: true, `[]`: false,
		`{`: false, `{"mcpServers":[]}`: false,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ReadServers(path, nil); (err == nil) != ok || err != nil &&
			!errors.Is(err, fault.ConfigInvalid) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tool.exe")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, dir, path string }{
		{"tool.exe", "", dir},
		{path, "", ""},
		{"." + string(filepath.Separator) + "tool.exe", dir, ""},
	} {
		if got, err := process.Locate([]string{c.name}, c.dir, []string{"PATH=" + c.path}); got != path {
			t.Errorf("%+v: got %s, %v", c, got, err)
		}
	}
	for _, name := range []string{"tool.exe", "other"} {
		if got, err := process.Locate([]string{name}, dir, []string{"PATH=."}); err == nil {
			t.Errorf("%s is found in a directory that depends on where we are: %s", name, got)
		}
	}
}

// TestLongConfig: a file of any size is not held in memory.
func TestLongConfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(path, []byte(`{"mcpServers":{}}`+strings.Repeat(" ", maxConfig)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadServers(path, nil); !errors.Is(err, fault.FieldTooLarge) {
		t.Errorf("%v", err)
	}
}
