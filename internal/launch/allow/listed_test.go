package allow_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/audit"
)

// scene is an agent as npm installs it, a gate with a list, and the entries that the gate has recorded.
type scene struct {
	dir     string
	gate    allow.Gate
	request allow.Request
	entries []audit.Entry
}

func newScene(t *testing.T) *scene {
	t.Helper()
	dir := place(t)
	s := &scene{dir: dir}
	put(t, dir+"/tools/node", "\x7fELF", 0o755)
	put(t, dir+"/lib/agent/package.json", `{"name":"agent","version":"1.0.0"}`, 0o644)
	in := put(t, dir+"/lib/agent/agent.js", "#!/usr/bin/env node\none\n", 0o755)
	if err := os.MkdirAll(dir+"/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	in.Path = dir + "/bin/agent"
	if err := os.Symlink(in.RealPath, in.Path); err != nil {
		t.Fatal(err)
	}
	s.request = allow.Request{
		Driver: driver("x"), Install: in, Env: []string{
			"PATH=" + dir + "/bin:" + dir + "/tools",
			"HOME=" + dir + "/home",
		},
		Dirs: []string{dir},
	}
	s.gate = allow.Gate{
		Closed: true, List: allow.OpenList(dir + "/state/agents.json"),
		Record: func(e audit.Entry) error { s.entries = append(s.entries, e); return nil },
	}
	return s
}

// allow records the agent as it is now.
func (s *scene) allow(t *testing.T) {
	t.Helper()
	e, err := s.gate.Facts(s.request)
	if err == nil {
		err = s.gate.List.Put(e, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// admit asks the gate with the list as it is on disk now.
func (s *scene) admit() error {
	s.gate.List = allow.OpenList(s.gate.List.File())
	_, err := s.gate.Admit(s.request)
	return err
}

func TestDefaultIsToDeny(t *testing.T) {
	s := newScene(t)
	err := s.admit()
	if !errors.Is(err, fault.NotAllowed) || fault.Of(err).Kind() != fault.Denied ||
		!strings.Contains(fault.Of(err).Suggestion, "omniagent agents allow x") {
		t.Errorf("%+v", err)
	}
	s.allow(t)
	if err := s.admit(); err != nil {
		t.Error(err)
	}
	if len(s.entries) != 2 || s.entries[0].ErrorCode != "AGENT_NOT_ALLOWED" || s.entries[1].ErrorCode != "" {
		t.Errorf("%+v", s.entries)
	}
	s.gate.Allow = []string{"y"} // the key agents.allow holds as well
	if err := s.admit(); !errors.Is(err, fault.NotAllowed) {
		t.Errorf("%v", err)
	}
	// An agent of the user's own is in no other list, so that hosts need this one for it.
	own := newScene(t)
	own.gate.Closed, own.request.Custom = false, true
	if err := own.admit(); !errors.Is(err, fault.NotAllowed) {
		t.Errorf("%v", err)
	}
	own.allow(t)
	if err := own.admit(); err != nil {
		t.Error(err)
	}
	// Hosts need no list for others, and obey a denial.
	open := newScene(t)
	open.gate.Closed = false
	if err := open.admit(); err != nil {
		t.Error(err)
	}
	if err := open.gate.List.Put(allow.Entry{Name: "x", Denied: true, At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	for _, open.gate.Closed = range []bool{false, true} {
		if err := open.admit(); !errors.Is(err, fault.NotAllowed) || !strings.Contains(err.Error(), "agents deny") {
			t.Errorf("%v", err)
		}
	}
}

func TestAnotherProgramIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(t *testing.T, s *scene)
		says   string
	}{
		"other content": {func(t *testing.T, s *scene) {
			put(t, s.dir+"/lib/agent/agent.js", "#!/usr/bin/env node\ntwo\n", 0o755)
		}, "agent.js is not the file that was allowed"},
		"other content with the old time": {func(t *testing.T, s *scene) {
			path := s.dir + "/lib/agent/agent.js"
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			put(t, path, "#!/usr/bin/env node\ntwo\n", 0o755)
			if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
				t.Fatal(err)
			}
		}, "agent.js is not the file that was allowed"},
		"other package": {func(t *testing.T, s *scene) {
			put(t, s.dir+"/lib/agent/package.json", `{"name":"agent","version":"1.0.1"}`, 0o644)
		}, "package.json is not the file that was allowed"},
		"other interpreter": {func(t *testing.T, s *scene) {
			put(t, s.dir+"/tools/node", "\x7fOTHER", 0o755)
		}, "node is not the file that was allowed"},
		"interpreter from elsewhere": {func(t *testing.T, s *scene) {
			put(t, s.dir+"/first/node", "\x7fELF", 0o755)
			s.request.Env[0] = "PATH=" + s.dir + "/first:" + s.dir + "/tools"
		}, "its interpreter is " + "/first/node"},
		"shadowed in PATH": {func(t *testing.T, s *scene) {
			s.request.Install = put(t, s.dir+"/first/agent", "#!/usr/bin/env node\none\n", 0o755)
		}, "the program is /first/agent"},
		"link to elsewhere": {func(t *testing.T, s *scene) {
			s.request.Install.RealPath = put(t, s.dir+"/lib/other.js", "#!/usr/bin/env node\none\n", 0o755).Path
		}, "the program is /lib/other.js"},
		"another program in its place": {func(t *testing.T, s *scene) {
			s.request.Install = hands(s.request.Install, put(t, s.dir+"/lib/native", "\x7fELF", 0o755).Path)
		}, "the program that is started in its place is /lib/native, and none was allowed"},
		"relative PATH": {func(_ *testing.T, s *scene) {
			s.request.Env[0] += ":bin"
		}, `PATH has the relative entry "bin"`},
		"empty entry in PATH": {func(_ *testing.T, s *scene) {
			s.request.Env[0] += ":"
		}, `PATH has the relative entry ""`},
		"writable file": {func(t *testing.T, s *scene) {
			chmod(t, s.dir+"/lib/agent/agent.js", 0o757)
		}, "every user of this machine may change /lib/agent/agent.js"},
		"writable directory far above": {func(t *testing.T, s *scene) {
			chmod(t, s.dir+"/lib", 0o777)
		}, "every user of this machine may change /lib"},
		"writable directory of the link": {func(t *testing.T, s *scene) {
			chmod(t, s.dir+"/bin", 0o777)
		}, "every user of this machine may change /bin"},
		"writable directory of the interpreter": {func(t *testing.T, s *scene) {
			chmod(t, s.dir+"/tools", 0o777)
		}, "every user of this machine may change /tools"},
		"of the workspace": {func(_ *testing.T, s *scene) {
			s.gate.Roots = []string{s.dir + "/lib"}
		}, "comes with the workspace"},
		"gone": {func(t *testing.T, s *scene) {
			if err := os.Remove(s.dir + "/lib/agent/agent.js"); err != nil {
				t.Fatal(err)
			}
		}, "agent.js cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.allow(t)
			if err := s.admit(); err != nil {
				t.Fatal(err)
			}
			tt.change(t, s)
			err := s.admit()
			if !errors.Is(err, fault.NotAllowed) ||
				!strings.Contains(strings.ReplaceAll(err.Error(), s.dir, ""), tt.says) {
				t.Errorf("%v", err)
			}
			if last := s.entries[len(s.entries)-1]; last.ErrorCode != string(fault.NotAllowed) {
				t.Errorf("recorded as %+v", last)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// A file that was written again with the same content is hashed once, and then known by its new times.
func TestSameContentIsAllowed(t *testing.T) {
	s := newScene(t)
	s.allow(t)
	before, _, _ := allow.OpenList(s.gate.List.File()).Find("x")
	if err := os.Remove(s.dir + "/lib/agent/agent.js"); err != nil {
		t.Fatal(err)
	}
	put(t, s.dir+"/lib/agent/agent.js", "#!/usr/bin/env node\none\n", 0o755)
	if err := s.admit(); err != nil {
		t.Fatal(err)
	}
	after, _, err := allow.OpenList(s.gate.List.File()).Find("x")
	if err != nil || !before.Allows(after) || before.Files[0] == after.Files[0] {
		t.Errorf("%+v, %v", after, err)
	}
}

func TestListInTheWorkspaceIsNotBelieved(t *testing.T) {
	s := newScene(t)
	s.allow(t)
	s.gate.Roots = []string{s.dir + "/state"}
	for _, s.gate.Closed = range []bool{true, false} {
		if err := s.admit(); !errors.Is(err, fault.NotAllowed) || !strings.Contains(err.Error(), "agents.json") {
			t.Errorf("%v", err)
		}
	}
}

func TestDirectoriesAndFlags(t *testing.T) {
	s := newScene(t)
	s.gate.Closed = false
	for _, dir := range []string{"/work/deep", "/other"} {
		if err := os.MkdirAll(s.dir+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(s.dir+"/other", s.dir+"/work/out"); err != nil {
		t.Fatal(err)
	}
	s.gate.Within = []string{s.dir + "/work"}
	for dir, want := range map[string]bool{
		"/work": true, "/work/deep": true, "/other": false, "/work/out": false, "/work/../other": false, "/none": false,
	} {
		s.request.Dirs = []string{s.dir + "/work", s.dir + dir}
		if err := s.admit(); (err == nil) != want || err != nil && !errors.Is(err, fault.NotAllowed) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	s.gate.Within, s.gate.DenyFlags = nil, []string{"--dangerously-*", "-c sandbox_mode=*", "--mcp-config", "-y"}
	for args, want := range map[string]bool{
		"":                             true,
		"--model big -c model=x":       true,
		"--dangerously-skip":           false,
		"--dangerously-skip=yes":       false,
		"-c sandbox_mode=off":          false,
		"-csandbox_mode=off":           false,
		"-c=sandbox_mode=off":          false,
		"--mcp-config x":               false,
		"--mcp-config=x":               false,
		"--mcp-configure":              true,
		"-y":                           false,
		"--yes -- --dangerously-skip":  false,
		"--say --dangerous":            true,
		"-c model=x -c sandbox_mode=a": false,
	} {
		s.request.Passthrough = strings.Fields(args)
		if err := s.admit(); (err == nil) != want || err != nil && !errors.Is(err, fault.NotAllowed) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// What nobody can hash is not allowed either.
func TestFactsOfWhatIsNotThere(t *testing.T) {
	s := newScene(t)
	s.request.Install = agent.Install{Path: filepath.Join(s.dir, "none"), RealPath: filepath.Join(s.dir, "none")}
	if _, err := s.gate.Facts(s.request); err == nil {
		t.Error("a program that is not there has facts")
	}
}

func BenchmarkAdmit(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "agent")
	if err := os.WriteFile(path, make([]byte, 100<<20), 0o755); err != nil {
		b.Fatal(err)
	}
	g := allow.Gate{Closed: true, List: allow.OpenList(filepath.Join(dir, "agents.json"))}
	r := allow.Request{Driver: driver("x"), Install: agent.Install{Path: path, RealPath: path}}
	e, err := g.Facts(r)
	if err == nil {
		err = g.List.Put(e, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g.List = allow.OpenList(g.List.File())
		if _, err := g.Admit(r); err != nil {
			b.Fatal(err)
		}
	}
}
