package sandbox

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// agentHome is a home directory with an agent in it, which is a shell, and a workspace.
type agentHome struct {
	ground
	home  string
	walls *AgentWalls
	needs AgentNeeds
}

func newAgentHome(t *testing.T, reviewed map[string]string) *agentHome {
	t.Helper()
	return newAgentHomeWith(t, reviewed, func(string) {})
}

// newAgentHomeWith lets something change the home directory before the walls are built.
func newAgentHomeWith(t *testing.T, reviewed map[string]string, change func(home string)) *agentHome {
	t.Helper()
	g := newGround(t)
	a := &agentHome{ground: g, home: g.dir + "/home"}
	for name, text := range map[string]string{
		".ssh/id": "secret", ".agent/login": "login", ".agent.json": "settings", "project/a": "a",
		"tools/package": "of it",
	} {
		path := filepath.Join(a.home, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	a.root = a.home + "/project"
	shell, err := exec.LookPath("bash")
	must(t, err)
	text, err := os.ReadFile(shell)
	must(t, err)
	must(t, hermetic.WriteProgram(a.home+"/tools/agent", text, 0o700))
	p := g.policy()
	p.Root, p.Homes, p.Protected = a.root, []string{a.home}, nil
	change(a.home)
	files := map[string]string{}
	for path, sum := range reviewed {
		files[a.root+"/"+path] = sum
	}
	a.walls, err = OpenAgent(AgentPolicy{
		Policy: p, Veiled: []string{".claude", ".github/hooks", ".agent.json"},
		OwnSettings: []string{".claude/.own"}, Reviewed: files,
	},
		[]string{a.home + "/.agent.json"}, Options{State: g.state})
	masked := os.Getenv(groundVariable) != "" && err != nil && strings.Contains(err.Error(), "/proc:")
	if errors.Is(err, fault.ServiceDown) && (masked || len(tiers(t)) < 2) {
		t.Skipf("there are no walls for agents here: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, a.walls.Close()) })
	a.needs = AgentNeeds{
		Own: []string{a.home + "/.agent"}, Show: []string{a.home + "/tools"},
		Readers: []string{a.home + "/tools/agent"},
	}
	return a
}

// start starts a line in the agent.
func (a *agentHome) start(t *testing.T, line string, input *os.File, out *bytes.Buffer) *process.Child {
	t.Helper()
	plan := process.Plan{
		Argv: []string{"agent", "-c", line}, Path: a.home + "/tools/agent", Dir: a.root,
		Env: append(os.Environ(), "HOME="+a.home, "LC_ALL=C"), Stdout: out, Stderr: out,
	}
	if input != nil {
		plan.Stdin = input
	}
	p, err := a.walls.Plan(plan, a.needs)
	must(t, err)
	child, err := process.Start(p)
	must(t, err)
	return child
}

// says runs a line in the agent.
func (a *agentHome) says(t *testing.T, line string) string {
	t.Helper()
	var out bytes.Buffer
	a.start(t, line, nil, &out).Wait()
	return strings.TrimSpace(out.String())
}

// TestAgentDoes lists what an agent can do, and what it cannot.
func TestAgentDoes(t *testing.T) {
	hermetic.Long(t)
	a := newAgentHome(t, nil)
	for _, c := range []struct{ line, want string }{
		{"cd; echo .[a-z]* *", ".agent .agent.json .gitconfig project tools"},
		{"cat a; echo b >a; cat a", "ab"},
		{"mkdir d && mv a d/b && cat d/b && rm -r d && echo gone", "b\ngone"},
		{"cat ~/.agent/login; echo more >~/.agent/new; cat ~/.agent/new", "loginmore"},
		{"cat ~/tools/package; echo >~/tools/package || echo refused", "REFUSED"},
		{"cat ~/.ssh/id || echo none", "NONE"},
		{"cat $SECRET || echo none", "NONE"},
		{"touch /etc/x || touch /usr/x || touch $OUTSIDE/x || echo refused", "REFUSED"},
		{"echo own >/tmp/x && cat /tmp/x; echo >/dev/null && echo /run/*", "own\n/run/*"},
		{"kill -9 1; kill -KILL $PPID; echo alive", "alive"},
		{"cat /proc/1/environ; head -c 1 /proc/1/mem; ls /proc/1/root/ /proc/1/fd/; echo done", "DENIED"},
		{"mount -o remount,rw / || mount -t tmpfs x /etc || umount -l ~ || echo refused", "REFUSED"},
		{"unshare -Urm umount -l ~; cat ~/.ssh/id || echo none", "NONE"},
		{"unshare -Urm mount -o remount,bind,rw / || echo refused", "REFUSED"},
		{"unshare -Urm nsenter -t 1 -m -- cat ~/.ssh/id || echo refused", "REFUSED"},
		{"echo >/proc/sys/kernel/core_pattern || echo refused", "REFUSED"},
		{"unshare -Urmpf sh -c 'mount -t tmpfs x /mnt && echo nested'", "nested"},
		{"[[ $$ -lt 100 ]] && echo $(ls -d /proc/[0-9]* | wc -l)", "FEW"},
		{"grep -c . /etc/passwd >/dev/null && git --version >/dev/null && echo works", "works"},
	} {
		line := strings.NewReplacer("$SECRET", a.secret+"/key", "$OUTSIDE", a.outside).Replace(c.line)
		got := a.says(t, line)
		ok := got == c.want
		switch c.want {
		case "REFUSED":
			ok = strings.HasSuffix(got, "refused")
		case "NONE":
			ok = strings.HasSuffix(got, "none") && !strings.HasPrefix(got, "secret")
		case "DENIED":
			ok = strings.Count(got, "Permission denied")+strings.Count(got, "cannot access") >= 4 &&
				!strings.Contains(got, "PATH")
		case "FEW":
			ok = len(got) == 1
		}
		if !ok {
			t.Errorf("%s: %q, want %q", line, got, c.want)
		}
	}
	for path, want := range map[string]string{
		a.home + "/.ssh/id": "secret", a.home + "/tools/package": "of it", a.home + "/.agent/new": "more\n",
		a.outside + "/file": "outside",
	} {
		if text, err := os.ReadFile(path); string(text) != want {
			t.Errorf("%s: %q %v", path, text, err)
		}
	}
}

// TestAgentReachesNoControlGroup: the superuser's agent would end processes outside by the control group they are in.
func TestAgentReachesNoControlGroup(t *testing.T) {
	hermetic.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("control groups belong to the superuser")
	}
	table, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		kind, file, word := fields[2], "cgroup.kill", "1"
		if kind == "cgroup" && strings.HasSuffix(fields[3], ",freezer") {
			file, word = "freezer.state", "FROZEN"
		} else if kind != "cgroup2" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			a := newAgentHome(t, nil)
			name := filepath.Base(a.dir)
			group := unescaped(fields[1]) + "/" + name
			if err := os.Mkdir(group, 0o755); err != nil {
				t.Skip("no control group can be made; run as root, or in a delegated one: ", err)
			}
			t.Cleanup(func() { waitUntil(t, func() bool { return os.Remove(group) == nil }) })
			outside := exec.Command("cat")
			input, err := outside.StdinPipe()
			must(t, err)
			output, err := outside.StdoutPipe()
			must(t, err)
			must(t, outside.Start())
			t.Cleanup(func() { must(t, errors.Join(input.Close(), outside.Wait())) })
			must(t, os.WriteFile(group+"/cgroup.procs", fmt.Append(nil, outside.Process.Pid), 0))
			for _, way := range []string{
				"unshare -UrmC bash -c 'mount -t KIND x /tmp/g && echo WORD >/tmp/g/NAME/FILE' && echo done",
				"unshare -Urm bash -c 'mount -t KIND x /tmp/g && echo WORD >/tmp/g/NAME/FILE' && echo done",
				"unshare -Urm bash -c 'mount -o remount,bind,rw TOP; echo WORD >TOP/NAME/FILE' && echo done",
				"unshare -Ur bash -c 'echo 9 >/proc/sys/user/max_cgroup_namespaces' && echo done",
				"echo WORD >TOP/NAME/FILE && echo done",
			} {
				if kind == "cgroup" {
					way = strings.ReplaceAll(way, "-t KIND", "-t KIND -o freezer")
				}
				way = strings.NewReplacer("KIND", kind, "WORD", word, "NAME", name, "FILE", file, "TOP",
					unescaped(fields[1])).Replace(way)
				if got := a.says(t, "mkdir -p /tmp/g; "+way); strings.HasSuffix(got, "done") {
					t.Errorf("%s: %s", way, got)
				}
			}
			if kind == "cgroup" {
				must(t, os.WriteFile(group+"/freezer.state", []byte("THAWED"), 0)) // else nothing answers
			}
			_, err = input.Write([]byte("alive"))
			got := make([]byte, 5)
			if _, err2 := output.Read(got); err != nil || err2 != nil || string(got) != "alive" {
				t.Errorf("the process outside: %q %v %v", got, err, err2)
			}
		})
	}
}

// TestAgentReplacesItsFile carries a single file both ways, also while the agent runs.
func TestAgentReplacesItsFile(t *testing.T) {
	a := newAgentHome(t, nil)
	outside := a.home + "/.agent.json"
	if got := a.says(t, "cat ~/.agent.json; echo new >~/n && mv ~/n ~/.agent.json"); got != "settings" {
		t.Errorf("it reads %q", got)
	}
	read, write, err := os.Pipe()
	must(t, err)
	var out bytes.Buffer
	child := a.start(t, "until [[ $(<~/.agent.json) = ours ]]; do :; done; echo theirs >~/.agent.json; read; echo over",
		read, &out)
	must(t, read.Close())
	must(t, os.WriteFile(a.home+"/new", []byte("ours\n"), 0o600))
	must(t, os.Rename(a.home+"/new", outside))
	waitUntil(t, func() bool { text, _ := os.ReadFile(outside); return string(text) == "theirs\n" })
	must(t, write.Close())
	if child.Wait(); strings.TrimSpace(out.String()) != "over" {
		t.Errorf("%q", out.String())
	}
	if got := a.says(t, "cat ~/.agent.json"); got != "theirs" {
		t.Errorf("the next process reads %q", got)
	}
}

func waitUntil(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(hermetic.Patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not become so")
		}
	}
}

// TestAgentHasLinks: a person may keep what belongs to an agent elsewhere, and have links to it.
func TestAgentHasLinks(t *testing.T) {
	a := newAgentHomeWith(t, nil, func(home string) {
		must(t, os.MkdirAll(home+"/dotfiles/config", 0o700))
		for from, to := range map[string]string{".agent": "dotfiles/agent", ".agent.json": "dotfiles/settings"} {
			must(t, os.Rename(home+"/"+from, home+"/"+to))
			must(t, os.Symlink(to, home+"/"+from))
		}
		must(t, os.Symlink("dotfiles/config", home+"/.config"))
	})
	a.needs.Own = append(a.needs.Own, a.home+"/.config/agent")
	got := a.says(t, "cat ~/.agent/login ~/.agent.json; echo 1 >~/.agent/new; echo 2 >~/.config/agent/new; "+
		"echo 3 >~/n; mv ~/n ~/.agent.json; echo >~/dotfiles/x || echo refused")
	if !strings.HasPrefix(got, "loginsettings") {
		t.Errorf("%q", got)
	}
	waitUntil(t, func() bool { text, _ := os.ReadFile(a.home + "/dotfiles/settings"); return string(text) == "3\n" })
	for name, want := range map[string]string{"agent/new": "1\n", "config/agent/new": "2\n"} {
		if text, err := os.ReadFile(a.home + "/dotfiles/" + name); string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
	if to, err := os.Readlink(a.home + "/.agent.json"); to != "dotfiles/settings" {
		t.Errorf("the link is %q %v", to, err)
	}
	if _, err := os.Stat(a.home + "/dotfiles/x"); err == nil {
		t.Error("it writes next to its own files")
	}
}

// TestAgentIsVeiled lets configuration appear in the middle, by the agent's hands and by others.
func TestAgentIsVeiled(t *testing.T) {
	hermetic.Long(t)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("good")))
	a := newAgentHome(t, map[string]string{".claude/agents/good": sum, ".claude/agents/changed": sum})
	for name, text := range map[string]string{
		".claude/settings.json": "evil", ".claude/agents/good": "good", ".claude/agents/changed": "evil",
		"deep/.github/hooks/x": "evil", ".github/workflow": "plain", ".agent.json": "evil", "empty/.claude": "",
	} {
		path := filepath.Join(a.root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, os.Symlink(".claude", a.root+"/link"))
	for line, want := range map[string]string{
		"[[ -e .claude/settings.json ]] || echo missing":                              "missing",
		"read x <.claude/settings.json || echo missing":                               "missing",
		"read x <$PWD/../project/.claude/settings.json || echo missing":               "missing",
		"cd deep; [[ -d .github/hooks || -e .github/hooks/x ]] || echo missing":       "missing",
		"cd .claude/agents && read x <changed || echo missing":                        "missing",
		"read x <.claude/agents/good; echo $x":                                        "good",
		"mkdir .claude/.own; echo y >.claude/.own/z; read x <.claude/.own/z; echo $x": "y",
		"read x <.github/workflow; echo $x":                                           "plain",
		"[[ -f empty/.claude ]] && { read x <empty/.claude || echo missing; }":        "missing",
		"read x <.agent.json || echo missing":                                         "missing",
		"read x <~/.agent.json; echo $x":                                              "settings",
		"cat .claude/settings.json; exit":                                             "evil", // not its own program
		"cat link/settings.json; exit":                                                "evil",
		"mkdir new; mkdir new/.claude; [[ -e new/.claude ]] || echo missing":          "missing",
	} {
		if got := a.says(t, line); got != want && !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	must(t, os.WriteFile(a.root+"/.claude/settings.json", []byte("good"), 0o600)) // reviewed is another file
	if got := a.says(t, "read x <.claude/settings.json || echo missing"); !strings.HasSuffix(got, "missing") {
		t.Errorf("%q", got)
	}
}

// TestAgentBehindAScript: what is started may be a script that starts the program proper, which no look at files tells:
// pnpm, Nix and managers of versions make such ones. To that program, and to the others in its packages, the names
// do not exist either.
func TestAgentBehindAScript(t *testing.T) {
	a := newAgentHome(t, nil)
	must(t, os.MkdirAll(a.root+"/.claude", 0o700))
	must(t, os.WriteFile(a.root+"/.claude/x", []byte("evil"), 0o600))
	agent, helper := a.home+"/tools/agent", a.home+"/tools/node_modules/agent/bin/helper"
	text, err := os.ReadFile(agent)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(helper), 0o700))
	must(t, hermetic.WriteProgram(helper, text, 0o700))
	shell, err := filepath.EvalSymlinks("/bin/sh")
	must(t, err)
	const missing = "[[ -e .claude/x ]] || echo missing"
	looks := missing + "; cat .claude/x; $AGENT -c '" + missing + "; exit'; " + helper + " -c '" + missing + "; exit'"
	for name, script := range map[string]string{
		"executes":       `exec $AGENT "$@"`,
		"starts":         `$AGENT "$@"; exit`,
		"of another one": `exec /bin/sh -c '$AGENT "$@"; exit' sh "$@"`,
		"starts another": `/bin/sh -c '$AGENT "$@"; exit' sh "$@"; exit`,
	} {
		path := a.home + "/tools/script"
		must(t, hermetic.WriteProgram(path, []byte("#!/bin/sh\nexport AGENT="+agent+"\n"+script+"\n"), 0o700))
		b := *a
		b.needs.Readers, b.needs.Shells = []string{path, shell}, []string{shell}
		var out bytes.Buffer
		plan, err := b.walls.Plan(process.Plan{
			Argv: []string{"script", "-c", looks, filepath.Dir(helper) + "/main.js"}, Path: path, Dir: a.root,
			Env: append(os.Environ(), "HOME="+a.home, "LC_ALL=C"), Stdout: &out, Stderr: &out,
		}, b.needs)
		must(t, err)
		child, err := process.Start(plan)
		must(t, err)
		child.Wait()
		if got := out.String(); got != "missing\nevilmissing\nmissing\n" {
			t.Errorf("a script that %s it: %q", name, got)
		}
	}
}

// TestAgentReadsNoLateConfiguration: where there was no configuration when the agent began, one that appears is not
// read, by whatever way it appears.
func TestAgentReadsNoLateConfiguration(t *testing.T) {
	a := newAgentHome(t, nil)
	must(t, os.MkdirAll(a.root+"/deep/.claude", 0o700)) // it does not look there before
	must(t, os.WriteFile(a.root+"/deep/.claude/settings.json", []byte("evil"), 0o600))
	for _, line := range []string{
		"cat deep/.claude/settings.json; read x <deep/.claude/settings.json || echo missing",
		"/bin/cp -r deep/.claude .; cat .claude/settings.json; read x <.claude/settings.json || echo missing",
		"cd deep; cd .claude 2>&- && read x <settings.json || echo missing",
		"/bin/cp deep/.claude/settings.json .agent.json; cat $PWD/.agent.json; read x <$PWD/.agent.json || echo missing",
	} {
		got := a.says(t, "exec 2>&-; "+line)
		if !strings.HasSuffix(got, "missing") || !strings.HasPrefix(line, "cd ") && !strings.HasPrefix(got, "evil") {
			t.Errorf("%s: %q", line, got)
		}
		must(t, os.RemoveAll(a.root+"/.claude"))
		must(t, os.RemoveAll(a.root+"/.agent.json"))
	}
}

// TestLooksThatAreHeld: an agent finds all of its configuration, or nothing of it.
func TestLooksThatAreHeld(t *testing.T) {
	root := t.TempDir()
	v := &hiddenFiles{names: [][]string{{".veiled"}, {".veiled-by", "hooks"}}, own: []string{root + "/own"}}
	dirs := []string{root + "/own", root + "/a/b", root + "/c"}
	for _, dir := range dirs {
		must(t, os.MkdirAll(dir, 0o700))
	}
	for path, want := range map[string]bool{
		"a/b/x": false, "a/b/.veiled-by/x": false, "own/.veiled": false, "a/b/deep/.veiled": false,
		"a/b/.veiled": true, "a/.veiled": true, ".veiled-by/hooks": true, "c/.veiled": true,
	} {
		file := filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must(t, os.Symlink("nowhere", file))
		if got := v.anyThere(dirs[1:]); got != want {
			t.Errorf("%s: %v", path, got)
		}
		must(t, os.Remove(file))
	}
}

// reachesPerson makes the calls by which an agent would reach the keys and the terminal of a person, with arguments
// that no kernel takes, and returns those that were not refused.
func reachesPerson() error {
	var wrong []error
	for _, c := range []struct {
		name      string
		call, arg uintptr
		want      syscall.Errno
	}{
		{"keyctl", unix.SYS_KEYCTL, 0, unix.EPERM},
		{"add_key", unix.SYS_ADD_KEY, 0, unix.EPERM},
		{"request_key", unix.SYS_REQUEST_KEY, 0, unix.EPERM},
		{"TIOCSTI", unix.SYS_IOCTL, unix.TIOCSTI, unix.EPERM},
		{"TIOCLINUX", unix.SYS_IOCTL, unix.TIOCLINUX, unix.EPERM},
		{"TCGETS", unix.SYS_IOCTL, unix.TCGETS, unix.EBADF},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, 0, unix.ENOSYS},
	} {
		if _, _, errno := unix.RawSyscall(c.call, ^uintptr(0), c.arg, 0); errno != c.want {
			wrong = append(wrong, fmt.Errorf("%s: %w, want %w", c.name, errno, c.want))
		}
	}
	return errors.Join(wrong...)
}

// TestAgentIsFiltered: an agent whose configuration nobody knows has the same filter.
func TestAgentIsFiltered(t *testing.T) {
	a := newAgentHome(t, nil)
	for name, change := range map[string]func(*AgentPolicy, *AgentNeeds){
		"names to hide": func(*AgentPolicy, *AgentNeeds) {},
		"none":          func(p *AgentPolicy, _ *AgentNeeds) { p.Veiled, p.OwnSettings = nil, nil },
		"from nobody":   func(_ *AgentPolicy, n *AgentNeeds) { n.Readers = nil },
	} {
		b := *a
		p := a.walls.policy
		change(&p, &b.needs)
		var err error
		b.walls, err = OpenAgent(p, nil, Options{State: a.state})
		must(t, err)
		if got := b.says(t, a.attacker+" reaches; grep ^Seccomp: /proc/self/status"); got != "Seccomp:\t2" {
			t.Errorf("%s: %s", name, got)
		}
		must(t, b.walls.Close())
	}
}

// TestAgentReadsOnly changes what a process may do while it runs.
func TestAgentReadsOnly(t *testing.T) {
	a := newAgentHome(t, nil)
	const try = "echo x 2>&- >a && echo wrote || echo refused"
	for _, on := range []bool{false, true, false} {
		must(t, a.walls.SetWritable(on))
		want := map[bool]string{false: "refused", true: "wrote"}[on]
		if got := a.says(t, try); !strings.HasSuffix(got, want) {
			t.Errorf("writable %v: %q", on, got)
		}
	}
	read, write, err := os.Pipe()
	must(t, err)
	heard, tell, err := os.Pipe()
	must(t, err)
	plan, err := a.walls.Plan(process.Plan{
		Argv: []string{"agent", "-c", "while read x; do " + try + "; done; exec 9>>a; echo open; read; exec 9>&-; echo"},
		Path: a.home + "/tools/agent", Dir: a.root, Stdin: read, Stdout: tell,
	}, a.needs)
	must(t, err)
	child, err := process.Start(plan)
	must(t, err)
	must(t, errors.Join(read.Close(), tell.Close()))
	block := make([]byte, 64)
	asked := func() string {
		_, err := write.WriteString("\n")
		must(t, err)
		n, err := heard.Read(block)
		must(t, err)
		return strings.TrimSpace(string(block[:n]))
	}
	for _, on := range []bool{false, true, false, true} {
		must(t, a.walls.SetWritable(on))
		if got, want := asked(), map[bool]string{false: "refused", true: "wrote"}[on]; got != want {
			t.Errorf("writable %v: %q", on, got)
		}
	}
	must(t, write.Close())
	child.Wait()

	var out bytes.Buffer
	read, write, err = os.Pipe()
	must(t, err)
	child = a.start(t, "exec 9>>a; echo >~/.agent/open; read", read, &out)
	must(t, read.Close())
	waitUntil(t, func() bool { _, err := os.Stat(a.home + "/.agent/open"); return err == nil })
	if err := a.walls.SetWritable(false); err == nil {
		t.Error("it is said that nothing can be written, though a file is open")
	}
	must(t, write.Close())
	child.Wait()
	if err := a.walls.SetWritable(false); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
}

// TestAgentLeavesNothing kills everything at once.
func TestAgentLeavesNothing(t *testing.T) {
	a := newAgentHome(t, nil)
	var out bytes.Buffer
	read, write, err := os.Pipe()
	must(t, err)
	defer write.Close()
	child := a.start(t, "sleep 1000 & echo >~/.agent/runs; read", read, &out)
	must(t, read.Close())
	waitUntil(t, func() bool { _, err := os.Stat(a.home + "/.agent/runs"); return err == nil })
	child.End(os.Kill)
	if e := child.Wait(); e.Signal != "SIGKILL" {
		t.Errorf("%+v", e)
	}
	if names, err := os.ReadDir(a.root); err != nil || len(names) != 1 {
		t.Errorf("the workspace has %v %v", names, err)
	}
	if err := a.walls.SetWritable(false); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
}

// TestAgentExplains: what is explained is what happens.
func TestAgentExplains(t *testing.T) {
	hermetic.Long(t)
	a := newAgentHome(t, nil)
	must(t, os.MkdirAll(a.root+"/.claude", 0o700))
	must(t, os.WriteFile(a.root+"/.claude/x", nil, 0o600))
	for _, path := range []string{
		"/etc/passwd", a.home + "/.ssh/id", a.home + "/.agent/login", a.home + "/.agent.json",
		a.home + "/tools/package", a.root + "/a", a.root + "/.claude/x", a.secret + "/key", a.outside + "/file",
		"/dev/null",
	} {
		needs := a.needs
		needs.Own = append(needs.Own, a.home+"/.agent.json")
		effects := a.walls.policy.Explain(path, needs)
		if len(effects) != 2 || effects[0].Why == "" || effects[1].Why == "" {
			t.Errorf("%s: %+v", path, effects)
			continue
		}
		does := a.says(t, "{ read -d '' x <"+path+" || [[ -r "+path+" ]]; } 2>&- && echo reads; "+
			"tee -a "+path+" </dev/null 2>/dev/null && echo writes")
		if want := [2]bool{strings.Contains(does, "reads"), strings.Contains(does, "writes")}; want !=
			[2]bool{effects[0].Allowed, effects[1].Allowed} {
			t.Errorf("%s: it does %q, and this is explained: %+v", path, does, effects)
		}
	}
}

// TestAgentIsTriedOnce: what held is not tried again, until a start fails.
func TestAgentIsTriedOnce(t *testing.T) {
	a := newAgentHome(t, nil)
	held := func(h triedWalls) bool {
		_, ok := h.found()
		return ok
	}
	if !held(a.walls.tried) {
		t.Fatal("it is not remembered that the walls held")
	}
	again := heldIn(a.state, a.walls.policy, []string{a.home + "/.agent.json"})
	other := a.walls.policy
	other.Root += "/other"
	if again != a.walls.tried || heldIn(a.state, other, nil) == again {
		t.Errorf("%+v is not %+v", again, a.walls.tried)
	}
	if got := a.says(t, "echo runs"); got != "runs" || !held(again) {
		t.Errorf("%q", got)
	}
	must(t, os.Rename(a.root, a.root+"-away"))
	must(t, os.Symlink(a.root+"-away", a.root))
	var out bytes.Buffer
	plan, err := a.walls.Plan(process.Plan{
		Argv: []string{"agent", "-c", "echo runs"}, Path: a.home + "/tools/agent", Dir: "/", Stdout: &out, Stderr: &out,
	}, a.needs)
	must(t, err)
	child, err := process.Start(plan)
	must(t, err)
	if e := child.Wait(); e.ExitCode == 0 || !strings.Contains(out.String(), "its walls do not stand") || held(again) {
		t.Errorf("a workspace that is a link now: %+v %q, remembered: %v", e, out.String(), held(again))
	}
}
