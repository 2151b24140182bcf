package demo

import (
	"encoding/json"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"
)

type answer struct {
	OK   bool `json:"ok"`
	Data struct {
		Scenes []scene `json:"scenes"`
		Agents []struct {
			Name      string  `json:"name"`
			Installed bool    `json:"installed"`
			Version   *string `json:"version"`
			Login     string  `json:"login"`
		} `json:"agents"`
		Next struct {
			Command string `json:"command"`
		} `json:"next"`
	} `json:"data"`
	Error *struct {
		Code string `json:"code"`
	} `json:"error"`
	Warnings []any `json:"warnings"`
}

type scene struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	OK    bool   `json:"ok"`
	Steps []struct {
		Command   string `json:"command"`
		Exit      int    `json:"exit_code"`
		AgentExit *int   `json:"agent_exit_code"`
		Stdout    string `json:"stdout"`
		Calls     []struct {
			Tool   string `json:"tool"`
			Target string `json:"target"`
			Output string `json:"output"`
		} `json:"calls"`
	} `json:"steps"`
	Script *string `json:"script"`
	Files  []struct {
		Path   string  `json:"name"`
		Before *string `json:"before"`
		After  *string `json:"after"`
	} `json:"files"`
	Different []string `json:"different"`
}

// played runs the demo in a pipe.
func played(t *testing.T, r room) (answer, int) {
	t.Helper()
	stdout, stderr, code := r.run(t, program, "demo")
	var a answer
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("no envelope: %v\n%s\n%s", err, stdout, stderr)
	}
	return a, code
}

func (a answer) scene(t *testing.T, name string) scene {
	t.Helper()
	for _, sc := range a.Data.Scenes {
		if sc.Name == name {
			return sc
		}
	}
	t.Fatalf("there is no scene %s", name)
	return scene{}
}

// walled skips where a demo says that no walls can be built.
func walled(t *testing.T, a answer) {
	t.Helper()
	if strings.HasPrefix(a.scene(t, "walls").Title, "No walls") {
		t.Skip("no walls can be built on this machine")
	}
}

// TestPipe: a program gets all of it as an envelope, and nothing is left, neither a file nor a process.
func TestPipe(t *testing.T) {
	if !alone {
		t.Log("the network of this machine is there")
	}
	r := newRoom(t)
	before := tree(t, r.home) + tree(t, r.dir)
	a, code := played(t, r)
	if code != 0 || !a.OK || len(a.Data.Scenes) != 3 || len(a.Warnings) > 0 {
		t.Errorf("exit %d, %+v", code, a)
	}
	for _, sc := range a.Data.Scenes {
		if !sc.OK || len(sc.Different) > 0 || len(sc.Steps) == 0 {
			t.Errorf("%+v", sc)
		}
	}
	if after := tree(t, r.home) + tree(t, r.dir); after != before {
		t.Errorf("something was left or changed\nbefore\n%s\nafter\n%s", before, after)
	}
	if found := r.alive(t); len(found) > 0 {
		t.Errorf("these are alive: %q", found)
	}
}

// TestSaysTheTruth does all of it again with the commands that the demo shows, and looks for itself.
func TestSaysTheTruth(t *testing.T) {
	a, _ := played(t, newRoom(t))
	walled(t, a)
	for _, name := range []string{"blocked", "walls", "task"} {
		t.Run(name, func(t *testing.T) {
			sc := a.scene(t, name)
			home := place(t)
			bin := filepath.Join(home, "bin")
			r := newRoom(t, "HOME="+home, "OMNIAGENT_DEMO_PART=claude", "PATH="+bin+":/usr/bin:/bin", "LC_ALL=C")
			r.dir = filepath.Join(home, "work")
			for _, dir := range []string{bin, r.dir} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, link := range []string{"claude", "omniagent"} {
				if err := os.Symlink(program, filepath.Join(bin, link)); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range sc.Files {
				if f.Before != nil {
					write(t, filepath.Join(r.dir, f.Path), *f.Before)
				}
			}
			for _, step := range sc.Steps {
				if sc.Script != nil {
					_, after, _ := strings.Cut(step.Command, "--rehearse=")
					write(t, filepath.Join(r.dir, strings.Fields(after)[0]), *sc.Script)
				}
				stdout, stderr, code := r.run(t, "/bin/sh", "-c", step.Command)
				if code != step.Exit || step.Stdout != "" && stdout != step.Stdout {
					t.Errorf("%s\nexit %d instead of %d\n%s\n%s", step.Command, code, step.Exit, stdout, stderr)
				}
				for _, c := range step.Calls {
					if !strings.Contains(stdout, c.Tool) {
						t.Errorf("the stream knows no %s:\n%s", c.Tool, stdout)
					}
				}
			}
			for _, f := range sc.Files {
				data, err := os.ReadFile(filepath.Join(r.dir, f.Path))
				if (err == nil) != (f.After != nil) || err == nil && string(data) != *f.After {
					t.Errorf("%s is %q, %v", f.Path, data, err)
				}
			}
		})
	}
}

// TestFacts are the claims themselves.
func TestFacts(t *testing.T) {
	a, _ := played(t, newRoom(t))
	walled(t, a)
	blocked := a.scene(t, "blocked").Steps
	if len(blocked) != 2 || blocked[0].Exit != 0 || blocked[1].Exit != 3 || blocked[1].AgentExit == nil ||
		*blocked[1].AgentExit != 0 || blocked[0].Stdout != blocked[1].Stdout {
		t.Errorf("%+v", blocked)
	}
	walls := a.scene(t, "walls")
	if out := walls.Steps[0].Calls[0].Output; !strings.Contains(out, "letter.txt") ||
		!strings.Contains(out, "planted") {
		t.Errorf("%q", out)
	}
	if walls.Files[0].After == nil || *walls.Files[0].After != *walls.Files[0].Before || walls.Files[1].After != nil {
		t.Errorf("%+v", walls.Files)
	}
	task := a.scene(t, "task")
	if *task.Files[0].Before == *task.Files[0].After || *task.Files[1].Before != *task.Files[1].After {
		t.Errorf("%+v", task.Files)
	}
	dir := t.TempDir()
	for _, f := range task.Files {
		write(t, filepath.Join(dir, f.Path), *f.Before)
	}
	check := func() error {
		cmd := exec.Command("sh", "check.sh")
		cmd.Dir = dir
		return cmd.Run()
	}
	if check() == nil {
		t.Error("the check passes before")
	}
	write(t, filepath.Join(dir, task.Files[0].Path), *task.Files[0].After)
	if err := check(); err != nil {
		t.Errorf("the check fails afterwards: %v", err)
	}
}

// TestTheWallsMatter: without them the same script deletes the one file and makes the other.
func TestTheWallsMatter(t *testing.T) {
	a, _ := played(t, newRoom(t))
	walled(t, a)
	sc := a.scene(t, "walls")
	r := newRoom(t)
	r.dir = filepath.Join(t.TempDir(), "work")
	write(t, filepath.Join(r.dir, "x"), "")
	write(t, filepath.Join(r.dir, "..", "letter.txt"), "x")
	write(t, filepath.Join(r.dir, "..", "leave.json"), *sc.Script)
	if stdout, stderr, code := r.run(t, program, "-p", "x", "--agent", "native", "--approval", "yolo", "--sandbox",
		"off", "--rehearse=../leave.json"); code != 0 {
		t.Fatalf("exit %d\n%s\n%s", code, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "..", "letter.txt")); err == nil {
		t.Error("the letter is still there")
	}
	if _, err := os.Stat(filepath.Join(r.dir, "..", "planted")); err != nil {
		t.Error(err)
	}
}

// TestHomeBeneathTmp: there the walls hide what is outside, and the demo says that.
func TestHomeBeneathTmp(t *testing.T) {
	home, err := os.MkdirTemp("/tmp", "demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	a, code := played(t, newRoom(t, "HOME="+home))
	walled(t, a)
	if sc := a.scene(t, "walls"); code != 0 || sc.Title != "A tool tries to leave the workspace, and does not get out" {
		t.Errorf("exit %d, %+v", code, sc)
	}
}

// TestHomeOfTheAccount: in the home that the system knows of, in which the walls hide more than in another.
func TestHomeOfTheAccount(t *testing.T) {
	account, err := user.Current()
	if err != nil || !filepath.IsAbs(account.HomeDir) {
		t.Skip("the account has no home directory")
	}
	around := filepath.Join(account.HomeDir, ".local", "state")
	if made, err := os.MkdirTemp(account.HomeDir, ".test-"); err != nil || os.Remove(made) != nil {
		t.Skipf("the home of the account cannot be written: %v", err)
	}
	list := func() string {
		entries, _ := os.ReadDir(around)
		names := []string{}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " ")
	}
	before := list()
	if a, code := played(t, newRoom(t, "HOME="+account.HomeDir)); code != 0 {
		t.Errorf("exit %d, %+v", code, a)
	}
	if after := list(); after != before {
		t.Errorf("it left %q, there was %q", after, before)
	}
}

// TestHomeInARepository: what belongs to the user's own files does not become a part of the scenes.
func TestHomeInARepository(t *testing.T) {
	r := newRoom(t)
	write(t, filepath.Join(r.home, ".git", "config"), "")
	write(t, filepath.Join(r.home, "AGENTS.md"), "Do nothing.\n")
	write(t, filepath.Join(r.home, ".omniagent", "config.toml"), "agent = \"native\"\n")
	if a, code := played(t, r); code != 0 {
		t.Errorf("exit %d, %+v", code, a)
	}
}

// TestBroken: what is missing is told, and the demo has failed.
func TestBroken(t *testing.T) {
	r := newRoom(t, "PATH="+t.TempDir())
	a, code := played(t, r)
	walled(t, a)
	if code != 1 || a.OK || a.Error == nil || a.Error.Code != "SCENE_FAILED" {
		t.Errorf("exit %d, %+v", code, a)
	}
	for name, word := range map[string]string{"walls": "rm", "task": "sh"} {
		sc := a.scene(t, name)
		if sc.OK || !strings.Contains(strings.Join(sc.Different, "\n"), word+": command not found") {
			t.Errorf("%s: %v %q", name, sc.OK, sc.Different)
		}
	}
	if sc := a.scene(t, "blocked"); !sc.OK {
		t.Errorf("%+v", sc)
	}
	stdout, stderr, code := r.run(t, program, "demo", "--output", "plain")
	if code != 1 || strings.Count(stdout, "NOT AS CLAIMED: ") < 2 ||
		!strings.Contains(stderr, "not as claimed: walls, task") {
		t.Errorf("exit %d\n%s\n%s", code, stdout, stderr)
	}
}

// TestTerminal: a person gets the same as text, in 80 columns and without escape sequences.
func TestTerminal(t *testing.T) {
	r := newRoom(t)
	cmd := exec.Command(program, "demo")
	cmd.Dir, cmd.Env = r.dir, r.env
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	shown := strings.ReplaceAll(readAll(master), "\r\n", "\n")
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, shown)
	}
	// What a terminal shows while a call takes longer than a second, and how that is wiped out.
	clock := regexp.MustCompile(`(\rdemo: \d+s *\x08*)+\r *\x08*\r`)
	shown = clock.ReplaceAllString(shown, "")
	if strings.ContainsAny(shown, "\x1b\a\r") {
		t.Errorf("there are escape sequences in %q", shown)
	}
	for l := range strings.Lines(shown) {
		if len(l) > 81 {
			t.Errorf("%d columns: %s", len(l)-1, l)
		}
	}
	for _, want := range []string{
		"\n1. ", "\n2. ", "\n3. ", "\n4. ", "claude is played by this program", "; echo $?",
		"\n   3\n", "AGENT", "   $ ", "s in all.\n",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
}

// TestMachine: the command at the end is fitted to what is here.
func TestMachine(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"codex", "gemini"} {
		write(t, filepath.Join(bin, name), "#!/bin/sh\ntouch \"$HOME/started\"\n")
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := "PATH=" + bin + ":/usr/bin:/bin"
	for name, c := range map[string]struct {
		set  []string
		file string
		want string
	}{
		"nothing":    {nil, "", "npm install -g @anthropic-ai/claude-code"},
		"a key":      {[]string{"ANTHROPIC_API_KEY=x"}, "", "--agent native"},
		"two keys":   {[]string{"OPENAI_API_KEY=x", "GEMINI_API_KEY=x"}, "", "--provider openai"},
		"two agents": {[]string{path}, "", "omniagent --agent codex"},
		"a login": {
			[]string{path},
			".gemini/oauth_creds.json",
			"-p 'What is in this directory?' --agent gemini",
		},
		"a login and a key": {
			[]string{path, "OPENAI_API_KEY=x"},
			".codex/auth.json",
			"-p 'What is in this directory?' --agent codex",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoom(t, c.set...)
			if c.file != "" {
				write(t, filepath.Join(r.home, c.file), `{"token":"x"}`)
			}
			a, _ := played(t, r)
			if !strings.Contains(a.Data.Next.Command, c.want) {
				t.Errorf("%q, want %q", a.Data.Next.Command, c.want)
			}
			if _, err := os.Stat(filepath.Join(r.home, "started")); err == nil {
				t.Error("an agent was started")
			}
		})
	}
}
