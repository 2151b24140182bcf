package allow_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/cli"
	"omniagent/internal/agents/codex"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/audit"
	"omniagent/internal/testkit/hermetic"
)

func driver(name string) agent.Driver {
	return cli.Program{ID: name, About: agent.About{Title: name, Variables: []string{"OWN_*", "OTHER_KEY"}}}
}

// place returns a directory that only we may write.
func place(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the rules about who may write a file are those of POSIX")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, path, text string, mode os.FileMode) agent.Install {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = hermetic.WriteProgram(path, []byte(text), 0o755)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return agent.Install{Path: path, RealPath: path, Version: "1.2.3"}
}

func hands(in agent.Install, program string) agent.Install {
	in.Program = program
	return in
}

func TestWhoMayBeStarted(t *testing.T) {
	dir := place(t)
	fine := put(t, dir+"/bin/x", "\x7fELF", 0o755)
	for _, tt := range []struct {
		name   string
		allow  []string
		custom bool
		want   bool
	}{
		{"x", nil, false, true},
		{"x", nil, true, false},
		{"x", []string{"x"}, true, true},
		{"x", []string{"y"}, false, false},
		{"x", []string{"y", "x"}, false, true},
	} {
		var entry audit.Entry
		g := allow.Gate{Allow: tt.allow, Record: func(e audit.Entry) error { entry = e; return nil }}
		_, err := g.Admit(allow.Request{Driver: driver(tt.name), Custom: tt.custom, Install: fine})
		if (err == nil) != tt.want || (entry.ErrorCode == "") != tt.want {
			t.Errorf("%+v: %v, %+v", tt, err, entry)
		}
		if got := strings.Join(entry.Args, " "); !strings.Contains(got, "real_path="+fine.RealPath) ||
			!strings.Contains(got, "version=1.2.3") {
			t.Error(got)
		}
	}
	full := allow.Gate{Record: func(audit.Entry) error { return errors.New("full") }}
	if _, err := full.Admit(allow.Request{Driver: driver("x"), Install: fine}); err == nil {
		t.Error("what cannot be recorded is started")
	}
}

func TestProgramsThatOthersMayChange(t *testing.T) {
	dir := place(t)
	work := dir + "/work"
	env := []string{"PATH=" + dir + "/bin", "HOME=" + dir + "/home"}
	put(t, dir+"/bin/node", "\x7fELF", 0o755)
	open := put(t, dir+"/open/node", "\x7fELF", 0o755)
	if err := os.Chmod(filepath.Dir(open.Path), 0o777); err != nil {
		t.Fatal(err)
	}
	fine, script := put(t, dir+"/bin/fine", "\x7fELF", 0o755), put(t, dir+"/bin/script", "#!/usr/bin/env node\n", 0o755)
	for _, tt := range []struct {
		name    string
		install agent.Install
		want    bool
	}{
		{"a program", put(t, dir+"/bin/a", "\x7fELF", 0o755), true},
		{"writable by others", put(t, dir+"/bin/b", "\x7fELF", 0o757), false},
		{"in a directory that is", open, false},
		{"of the workspace", put(t, work+"/tools/c", "\x7fELF", 0o755), false},
		{"a script", put(t, dir+"/bin/d", "#!/usr/bin/env node\n", 0o755), true},
		{"with flags", put(t, dir+"/bin/e", "#!/usr/bin/env -S node --x\n", 0o755), true},
		{"for nothing", put(t, dir+"/bin/f", "#!\n", 0o755), false},
		{"for what is not there", put(t, dir+"/bin/g", "#!/usr/bin/env nodeless\n", 0o755), false},
		{"for a bad one", put(t, dir+"/bin/h", "#!"+open.Path+"\n", 0o755), false},
		{"for one of the workspace", put(t, dir+"/bin/i", "#!"+work+"/tools/c\n", 0o755), false},
		{"a script for a good program", hands(script, fine.Path), true},
		{"a script for a program that others may write", hands(script, dir+"/bin/b"), false},
		{"a script for a program of the workspace", hands(script, work+"/tools/c"), false},
		{"that is not there", agent.Install{Path: dir + "/none", RealPath: dir + "/none"}, false},
	} {
		g := allow.Gate{Roots: []string{work}}
		if _, err := g.Admit(allow.Request{
			Driver: driver("x"), Install: tt.install, Env: env,
		}); (err == nil) != tt.want {
			t.Errorf("%s: %v", tt.name, err)
		} else if err != nil && fault.Of(err).Code != fault.Unsafe && fault.Of(err).Code != fault.NotInstalled {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	base := []string{
		"PATH=/bin", "HOME=/h", "OWN_KEY=sk-ant-api03-0123456789012345678901234567890123456789", "OTHER_KEY=k",
		"VENDOR_KEY=secret", "NODE_OPTIONS=--require /x",
		"LD_PRELOAD=/x", "EXTRA=1", "PYTHONPATH=/x", "BASH_ENV=/x", "LC_ALL=C", "OWN_NODE=1", "GITHUB_TOKEN=t",
	}
	got := allow.Environment(base, []string{"OWN_*", "OTHER_KEY", "LD_*"},
		[]string{"EXTRA", "NODE_OPTIONS", "BASH_ENV"}, nil)
	want := []string{"PATH=/bin", "HOME=/h", base[2], "OTHER_KEY=k", "EXTRA=1", "LC_ALL=C", "OWN_NODE=1"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClouds: the credentials of a cloud go to the agent that was told to use it, and to nobody else.
func TestClouds(t *testing.T) {
	fine := put(t, place(t)+"/bin/fine", "\x7fELF", 0o755)
	cloud := []string{"AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=r", "GOOGLE_APPLICATION_CREDENTIALS=/f"}
	for _, c := range []struct {
		driver agent.Driver
		chosen string
		want   []string
	}{
		{claude.New(), "", nil},
		{claude.New(), "CLAUDE_CODE_USE_BEDROCK=0", nil},
		{claude.New(), "CLAUDE_CODE_USE_BEDROCK=1", cloud[:2]},
		{claude.New(), "CLAUDE_CODE_USE_VERTEX=1", cloud[2:]},
		{codex.New(), "CLAUDE_CODE_USE_BEDROCK=1", nil},
	} {
		env, err := (allow.Gate{}).Admit(allow.Request{
			Driver: c.driver, Install: fine, Env: append([]string{c.chosen}, cloud...),
		})
		got := slices.DeleteFunc(env, func(entry string) bool { return !slices.Contains(cloud, entry) })
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s with %q gets %q: %v", c.driver.Name(), c.chosen, got, err)
		}
	}
}
