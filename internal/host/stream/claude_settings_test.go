package stream_test

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch"
	"omniagent/internal/native/tool"
	"omniagent/internal/wire/claude"
)

// settings reads settings that a host handed over.
func settings(t *testing.T, data string) claude.Delta {
	t.Helper()
	d, err := stream.ReadSettings("--settings", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSettingsOpenNothing: what a flag has closed, settings that a host hands over do not open; else their list counts.
func TestSettingsOpenNothing(t *testing.T) {
	d := settings(t, `{"sandbox":{"enabled":true,"network":{"allowedDomains":["a.example"]}}}`)
	for flag, want := range map[string]string{"off": "off", "": "a.example"} {
		r, _, err := stream.With(
			launch.Request{Spec: agent.Spec{Terms: agent.Terms{Network: flag}}},
			stream.HostSettings{},
			d,
		)
		if err != nil || r.Spec.Terms.Network != want || r.Spec.Shared.Sandbox.Value != setting.WorkspaceWrite {
			t.Errorf("--network %q: %+v, %v", flag, r.Spec, err)
		}
	}
}

// TestSources: of settings that nobody handed over what they forbid counts, and nothing that they allow. What is not
// there says nothing; what cannot be read is refused.
func TestSources(t *testing.T) {
	files := map[string]string{
		"/home/.claude/settings.json": `{"permissions":{"allow":["Bash"],"deny":["WebFetch"],"defaultMode":"bypassPermissions"},"model":"x","theme":"dark"}`,
		"/w/.claude/settings.json":    `{"permissions":{"ask":["Write"],"disableBypassPermissionsMode":"disable"}}`,
		"/bad/.claude/settings.json":  `{"permissions":{"limit":7}}`,
		"/shut/.claude/settings.json": "",
	}
	at := func(dir string) stream.Files {
		return stream.Files{Config: "/home/.claude", Dir: dir, Read: func(path string) ([]byte, error) {
			if data, found := files[path]; data != "" {
				return []byte(data), nil
			} else if found {
				return nil, fs.ErrPermission
			}
			return nil, fs.ErrNotExist
		}}
	}
	var all []claude.Delta
	for _, name := range []string{"user", "project", "local"} {
		d, err := stream.Source(name, at("/w"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	may := launch.Request{Spec: agent.Spec{Terms: agent.Terms{Bypass: true}}}
	r, _, err := stream.With(may, stream.HostSettings{}, all...)
	if err != nil || r.Spec.Terms.Allow != nil || !slices.Equal(r.Spec.Terms.Deny, []string{"WebFetch"}) ||
		!slices.Equal(r.Ask, []string{"Write"}) ||
		r.Spec.Terms.Bypass ||
		r.Spec.Terms.Mode != "" ||
		r.Spec.Shared.Model.Value != "" ||
		strings.Join(all[0].Notes(), "") != "--setting-sources user: theme is ignored: it changes nothing here" {
		t.Errorf("%+v, %v, %v", r, all[0].Notes(), err)
	}
	if _, _, err := stream.With(launch.Request{Spec: agent.Spec{Terms: agent.Terms{Mode: setting.Yolo}}},
		stream.HostSettings{}, all...); err == nil {
		t.Error("a mode that is forbidden was chosen")
	}
	for dir, want := range map[string]string{"/bad": "may be a limit", "/shut": "cannot be read"} {
		if _, err := stream.Source("project", at(dir)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

// TestModes: a mode in settings holds unless one was typed, and everything may run only where nothing forbids it, in
// whatever order that is said.
func TestModes(t *testing.T) {
	yolo, never := settings(
		t,
		`{"permissions":{"defaultMode":"bypassPermissions"}}`,
	), settings(
		t,
		`{"permissions":{"disableBypassPermissionsMode":"disable"}}`,
	)
	unasked := settings(t, `{"permissions":{"defaultMode":"dontAsk"}}`)
	for name, c := range map[string]struct {
		begin  launch.Request
		deltas []claude.Delta
		want   string
	}{
		"settings": {deltas: []claude.Delta{yolo}, want: "yolo bypass"},
		"typed": {begin: launch.Request{
			Mode: true,
			Spec: agent.Spec{Terms: agent.Terms{Mode: setting.Plan}},
		}, deltas: []claude.Delta{yolo}, want: "plan"},
		"nobody is asked": {deltas: []claude.Delta{unasked}, want: "prompt unasked"},
		"forbidden":       {deltas: []claude.Delta{yolo, never}, want: "refused"},
		"forbidden first": {deltas: []claude.Delta{never, yolo}, want: "refused"},
		"may not come": {begin: launch.Request{
			Spec: agent.Spec{Terms: agent.Terms{Bypass: true}},
		}, deltas: []claude.Delta{never}},
	} {
		r, say, err := stream.With(c.begin, stream.HostSettings{}, c.deltas...)
		got := string(r.Spec.Terms.Mode)
		if err != nil {
			got = "refused"
		} else if say.Unasked {
			got += " unasked"
		} else if r.Spec.Terms.Bypass {
			got += " bypass"
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// TestInitialize: what a host says there is added to the flags, and nothing of a request that it is added to changes.
func TestInitialize(t *testing.T) {
	init, err := claude.ReadInitialize(
		[]byte(
			`{"sdkMcpServers":["in"],"mcpServers":{"out":{"command":"x"}},"disallowedTools":["Bash"],"appendSystemPrompt":"be kind",
		"settings":"s.json","title":"t"}`,
		),
	)
	if err != nil {
		t.Fatal(err)
	}
	files := stream.Files{Dir: "/w", Read: func(path string) ([]byte, error) {
		if path != "/w/s.json" {
			return nil, errors.New(path)
		}
		return []byte(`{"permissions":{"additionalDirectories":["more"]}}`), nil
	}}
	deltas, err := stream.Initialize(*init, files)
	if err != nil {
		t.Fatal(err)
	}
	begin := launch.Request{
		Spec: agent.Spec{
			Dir: "/w",
			Terms: agent.Terms{
				Deny:    make([]string, 1, 8),
				Dirs:    make([]string, 0, 8),
				Servers: []byte(`{"out":{"command":"old"}}`),
			},
		},
	}
	r, _, err := stream.With(begin, stream.HostSettings{}, deltas...)
	terms := r.Spec.Terms
	if err != nil || string(terms.Servers) != `{"in":{"name":"in","type":"sdk"},"out":{"command":"x"}}` ||
		terms.Append != "be kind" ||
		terms.Deny[1] != "Bash" ||
		!slices.Equal(terms.Dirs, []string{"/w/more"}) ||
		begin.Spec.Terms.Deny[:2][1] != "" ||
		begin.Spec.Terms.Dirs[:1][0] != "" {
		t.Errorf("%+v, %v", terms, err)
	}
	if _, err := stream.Initialize(claude.Initialize{Refused: errors.New("a limit")}, files); err == nil {
		t.Error("what is refused begins")
	}
}

// TestNative: tools have the native agent's names, and those that are only Claude Code's are not there.
func TestNative(t *testing.T) {
	r, notes := stream.Native(launch.Request{
		Spec: agent.Spec{
			Terms: agent.Terms{
				Allow: []string{"Agent(x)", "Workflow"},
				Deny:  []string{"Agent"},
				Tools: []string{"LSP"},
			},
		},
	}, tool.Ours().Specs())
	terms := r.Spec.Terms
	if !slices.Equal(terms.Allow, []string{"Task(x)"}) || !slices.Equal(terms.Deny, []string{"Task"}) ||
		terms.Tools == nil ||
		len(terms.Tools) != 0 ||
		len(notes) != 2 {
		t.Errorf("%+v %q", terms, notes)
	}
}
