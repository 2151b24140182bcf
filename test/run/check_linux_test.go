package run

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// harm is what an agent writes into a script that the check runs. Each line leaves a mark in the directory $1 of the
// machine, or prints what it should not see.
const harm = `touch $1/outside
cat $HOME/.ssh/id_ed25519
cat %[1]s/.ssh/id_ed25519
env | grep CLOUD_TOKEN
(exec 3<>/dev/tcp/127.0.0.1/%[2]d) 2>/dev/null && echo reached
mkdir -p .git/hooks && echo 'echo hooked' > .git/hooks/post-checkout
echo 'echo later' >> $HOME/.bashrc
mkdir -p %[1]s/.cache/go-build && echo x > %[1]s/.cache/go-build/poison
touch inside
(setsid sh -c 'sleep 30; touch $0/outlived' $1 >/dev/null 2>&1 &)
exit 0
`

// TestCheckBehindWalls: a check runs what the agent wrote. It changes the workspace and nothing else, sees no
// credential, no variable of the person's and no network, and leaves nothing that runs; in a fork and in a race too.
// With --check-outside it is what the person runs, and a secret that it prints is in no record.
func TestCheckBehindWalls(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, how := range [][]string{{}, {"--fork"}, {"--race"}, {"--check-outside"}} {
		t.Run(strings.Join(how, ""), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			marks := filepath.Join(filepath.Dir(p.home), "marks")
			if err := os.Mkdir(marks, 0o755); err != nil {
				t.Fatal(err)
			}
			p.put(filepath.Join(p.home, ".ssh/id_ed25519"), "the-key-of-the-person\n")
			p.env = append(p.env, "CLOUD_TOKEN=tok-canary-998877665544")
			p.agent("builder", "cat >/dev/null\ncat > t.sh <<'E'\n"+
				fmt.Sprintf(harm, p.home, l.Addr().(*net.TCPAddr).Port)+"E\necho done\n")
			walled := p.command("sandbox", "run", "--walls", "namespaces", "--", "true")
			if out, err := walled.CombinedOutput(); err != nil {
				p.refusesCheck(t, how)
				t.Skipf("this machine cannot build the walls that a check needs; allow user namespaces: %s", out)
			}
			args := append([]string{"--yolo", "--check", "bash t.sh " + marks}, how...)
			agent := "builder"
			if len(how) > 0 && how[0] == "--race" {
				args = append(args, "builder*2")
			}
			var a answer
			if strings.Contains(fmt.Sprint(how), "race") {
				a = p.call(append([]string{"run", "-p", "go"}, args...)...)
			} else {
				a = p.run(agent, args...)
			}
			if a.Code != 0 {
				t.Fatalf("%s", a)
			}
			all := a.Stdout + p.call("runs", "list").Stdout + p.onDisk(t)
			outside := len(how) > 0 && how[0] == "--check-outside"
			for what, seen := range map[string]bool{
				"a mark outside": exists(marks, "outside"), "a start-up file": exists(p.home, ".bashrc"),
				"the key":     strings.Contains(all, "the-key-of-the-person"),
				"the network": strings.Contains(all, `reached\n`),
				"a hook":      exists(p.work, ".git/hooks/post-checkout"),
				"the cache":   exists(p.home, ".cache/go-build/poison"),
			} {
				if seen != outside {
					t.Errorf("%s: %v, want %v\n%s", what, seen, outside, a)
				}
			}
			if strings.Contains(all, "tok-canary") {
				t.Errorf("the token is in a record: %s", all)
			}
			if got := strings.Contains(all, "CLOUD_TOKEN="); got != outside {
				t.Errorf("the variable was seen: %v", got)
			}
			if in := exists(p.work, "inside"); in != (len(how) == 0 || outside) {
				t.Errorf("the check changed the workspace: %v", in)
			}
			p.nothing()
		})
	}
}

// refusesCheck fails unless a check is refused before an agent begins.
func (p *place) refusesCheck(t *testing.T, how []string) {
	t.Helper()
	a := p.call("run", "--agent", "builder", "--yolo", "--check", "true", "-p", "go")
	if p.read("t.sh") != "" || a.Code == 0 || !strings.Contains(a.Stdout, "--check-outside") {
		t.Errorf("%v: %s", how, a)
	}
}

// onDisk returns all that runs have left on disk.
func (p *place) onDisk(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	files, err := filepath.Glob(filepath.Join(p.home, ".local/state/omniagent/runs/*/*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no record: %v", err)
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil {
			all.Write(data)
		}
	}
	return all.String()
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// TestSummaryHasTheCheckAlone: what the agent ran does not count as a check of the run.
func TestSummaryHasTheCheckAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t).model(`[{"calls":[{"shell":"echo hi >hi.txt"}]}, {"say":"ok"}]`)
	a := p.run("native", "--provider", "openai", "-m", "m", "--yolo", "--check-outside", "--check", "test -e hi.txt")
	a.is(t, 0, "succeeded", "done")
	if all := a.Data.Summary.Checks; len(all) != 1 || all[0].Command != "test -e hi.txt" || !all[0].OK {
		t.Errorf("%+v", all)
	}
}
