package run

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// TestOthersWorkBeside lets a person, and a second run, work in the directory while an agent does, at random. An undo
// of the agent's run never changes what it did not write, and behind walls it takes back all that it did.
func TestOthersWorkBeside(t *testing.T) {
	t.Parallel()
	times := hermetic.Times(40, 6)
	if hermetic.Matrices() {
		times = 1000
	}
	for seed := range times {
		walls := seed%2 == 0
		t.Run(fmt.Sprintf("%d/walls=%v", seed, walls), func(t *testing.T) {
			t.Parallel()
			besides(t, uint64(seed), walls)
		})
	}
}

func besides(t *testing.T, seed uint64, walls bool) {
	r := rand.New(rand.NewPCG(seed, 1))
	p := newPlace(t)
	if walls {
		p.walled()
	}
	var script strings.Builder
	script.WriteString("cat >/dev/null; : >began\n")
	for i := range 8 {
		name := fmt.Sprintf("a%d", i)
		p.put(name, "before\n")
		script.WriteString(pick(r, "echo agent >"+name, "rm "+name, "sed -i s/before/agent/ "+name,
			"mv "+name+" "+name+".moved", "mkdir d"+name+"; echo agent >d"+name+"/f", "chmod 700 "+name, ":"))
		fmt.Fprintf(&script, "\nsleep 0.0%d\n", r.IntN(6))
	}
	p.put("shared", "one\ntwo\nthree\n")
	both := seed%3 == 0
	script.WriteString("echo agent >>shared; : >ended\n")
	if both { // what both write within a moment is not told apart
		script.WriteString("while ! test -e mine0; do sleep 0.01; done\n")
	}
	script.WriteString("echo said\n")
	p.agent("scribe", script.String()).agent("second", "cat >/dev/null; echo second >second.txt; echo said")
	was := contents(t, p.work)
	var person sync.WaitGroup
	person.Go(func() { // the person has names of their own, and one file with the agent
		if both {
			p.exists([]string{"began", "ended"}[seed/2%2])
			time.Sleep(time.Second) // the look at what the agent wrote is late on a busy machine: docs/undo.md
			f, err := os.OpenFile(filepath.Join(p.work, "shared"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, _ = f.WriteString("mine\n")
				_ = f.Close()
			}
		}
		for i := range 8 {
			time.Sleep(time.Duration(r.IntN(60)) * time.Millisecond)
			name := filepath.Join(p.work, fmt.Sprintf("mine%d", (i+1)%4))
			if i%3 < 2 || i == 7 {
				_ = os.WriteFile(name, fmt.Appendf(nil, "mine %d\n", i), 0o600)
			} else {
				_ = os.Remove(name)
			}
		}
	})
	person.Go(func() {
		if seed%4 == 1 {
			_, _ = p.command("run", "--agent", "second", "--yolo", "-p", "go").CombinedOutput()
		}
	})
	a := p.run("scribe", "--yolo")
	person.Wait()
	between := contents(t, p.work)
	cmd := p.command("undo", "--run", a.Data.ID, "--output", "json")
	out, _ := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 0 && code != 3 && (walls || code != 5) {
		t.Fatalf("exit %d\n%s", code, out)
	}
	after := contents(t, p.work)
	for name, text := range between {
		foreign := strings.HasPrefix(name, "mine") || name == "second.txt"
		lost := strings.Contains(text, "mine\n") && !strings.Contains(after[name], "mine\n")
		if foreign && after[name] != text || lost {
			t.Errorf("%s was %q and is %q\n%s", name, text, after[name], out)
		}
		if !walls && after[name] != text {
			t.Errorf("nothing saw who wrote %s, and it was taken back", name)
		}
	}
	var told struct {
		Data struct{ Kept []struct{ Path string } }
	}
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatal(err)
	}
	if !walls {
		return
	}
	for name, text := range was {
		if after[name] != text && !(name == "shared" && strings.Contains(after[name], "mine\n")) {
			t.Errorf("%s is %q and was %q\n%s", name, after[name], text, out)
		}
	}
	for name := range after {
		if _, there := was[name]; !there && !strings.HasPrefix(name, "mine") && name != "second.txt" {
			t.Errorf("%s is left\n%s", name, out)
		}
	}
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// contents are the files of a directory, by their names.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	out, err := exec.Command("find", dir, "-type", "f", "-printf", "%P\n").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	return all
}
