//go:build unix

package rehearsal

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/launch/allow"
	"omniagent/internal/testkit/hermetic"
)

// ground is where a rehearsal is made: not in the system's temporary directory, where sandboxes are open.
type ground struct{ base, state, temp, home string }

func newGround(t *testing.T) ground {
	t.Helper()
	base, err := os.MkdirTemp("/var/tmp", "omniagent-rehearsal-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	g := ground{base, filepath.Join(base, "state"), filepath.Join(base, "temp"), filepath.Join(base, "home")}
	for _, dir := range []string{g.state, g.temp, g.home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

func (g ground) options() Options {
	return Options{
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "XDG_STATE_HOME=" + g.home,
			"OMNIAGENT_OUTPUT=plain", "GORACE=atexit_sleep_ms=0",
		}, State: g.state, Temp: g.temp, Tool: "9.9.9", Agents: everyAgent(),
		Clock: 20 * time.Second, Grace: 100 * time.Millisecond,
	}
}

// clean fails where anything is left.
func (g ground) clean(t *testing.T) {
	t.Helper()
	for _, dir := range []string{g.state, g.home} {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("%s has %v", dir, entries)
		}
	}
	out, _ := exec.Command("ps", "axeww").Output() // with their environment, in which their home is
	if strings.Contains(string(out), g.base) {
		t.Errorf("processes are left:\n%s", out)
	}
}

// TestEverythingHolds: an agent that does as it says.
func TestEverythingHolds(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	r := Run(t.Context(), []Subject{install(t, "good")}, g.options())[0]
	for _, f := range r.Findings {
		if f.Verdict != Holds || f.Failed() {
			t.Errorf("%+v", f)
		}
	}
	if len(r.Findings) != len(probes()) || len(r.Failed()) != 0 || r.Agent != "stub-good" || r.Version != "1.0.0" ||
		len(r.Program) != 1 || len(r.Program[0].SHA256) != 64 {
		t.Errorf("%+v", r)
	}
	for feature, want := range map[string]string{
		"approval prompt": "nothing was made",
		"approval yolo": "made: a file in the workspace by a command, one by its own tool, one outside by " +
			"a command",
		"sandbox workspace-write": "made: a file in the workspace by a command; not: one outside by a command, one " +
			"outside by its own tool; no port of this machine was reached",
		"model ": "asked: " + modelName, "web on": "a tool for pages is offered",
		"repo-config ": "nothing of the repository's ran",
		"denials ":     "3 denied tools are known; exit code 3", "prompt-size ": "50000 bytes arrived whole",
	} {
		name, value, _ := strings.Cut(feature, " ")
		if f := find(t, r, name, value); f.Observed != want {
			t.Errorf("%s: %q, want %q", feature, f.Observed, want)
		}
	}
	g.clean(t)
}

// TestDifferences: each thing that an agent does otherwise than it says is seen, and nothing else is blamed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		"liar":          {"sandbox workspace-write"},
		"leaks":         {"sandbox workspace-write"},
		"hides":         {"sandbox workspace-write"},
		"writes":        {"sandbox workspace-write"},
		"unasked":       {"approval prompt", "approval auto-edit"},
		"useless":       {"approval auto-edit", "approval yolo"},
		"silent":        {"denials "},
		"hooks":         {"repo-config "},
		"cuts":          {"prompt-size "},
		"another-model": {"model "},
		"web":           {"web off"},
		"forgets":       {"resume "},
		"no-json":       {"output json", "output stream-json"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			r := Run(t.Context(), []Subject{install(t, kind)}, g.options())[0]
			var got []string
			for _, f := range r.Findings {
				if f.Verdict == Differs {
					got = append(got, f.Feature+" "+f.Value)
					if !f.Failed() || f.Means == "" || f.Observed == "" {
						t.Errorf("%+v", f)
					}
				} else if f.Verdict != Holds && !(kind == "unasked" && f.Feature == agent.Denials &&
					f.Verdict == Untried) {
					t.Errorf("%+v", f)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("differs: %q, want %q", got, want)
			}
			g.clean(t)
		})
	}
}

// TestBroken: an agent that does not work costs one run, and everything about it is unknown.
func TestBroken(t *testing.T) {
	t.Parallel()
	for kind, why := range map[string]string{
		"hangs":   "it did not end within 1s, and was killed with all that it had started",
		"dies":    "it ended with exit code 7 and did not ask the model: Error: a library is missing",
		"garbage": "it ended with exit code 0 and did not ask the model",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			o := g.options()
			runs := 0
			o.Tell = func(p Progress) {
				if p.Record == nil {
					runs++
				}
			}
			if kind == "hangs" {
				o.Clock = time.Second
			}
			r := Run(t.Context(), []Subject{install(t, kind)}, o)[0]
			for _, f := range r.Findings {
				if f.Verdict != Unknown || !f.Failed() || !strings.Contains(f.Observed, why) ||
					!strings.Contains(f.Means, "omniagent --agent stub-"+kind) {
					t.Errorf("%+v", f)
				}
			}
			if runs != 1 {
				t.Errorf("%d runs", runs)
			}
			g.clean(t)
		})
	}
}

// TestTooLong: this program has to refuse what is longer than the agent takes.
func TestTooLong(t *testing.T) {
	t.Parallel()
	for careless, want := range map[string]Verdict{"": Holds, "1": Differs} {
		g := newGround(t)
		o := g.options()
		s := install(t, "good")
		o.Self, o.Env = s.Install.Path, append(o.Env, "STUB_CARELESS="+careless)
		f := find(t, Run(t.Context(), []Subject{s}, o)[0], PromptSize, "")
		if f.Verdict != want || want == Holds &&
			f.Observed != "50000 bytes arrived whole; one more is refused with exit code 2" || want == Differs &&
			f.Observed != "one character more was not refused" {
			t.Errorf("%+v", f)
		}
		g.clean(t)
	}
}

// TestOneRunHangs: what the others show is known all the same.
func TestOneRunHangs(t *testing.T) {
	t.Parallel()
	// On a busy machine the other runs may not end in time either; then all have more.
	for clock := 3 * time.Second; ; clock *= 2 {
		g := newGround(t)
		o := g.options()
		o.Clock = clock
		r := Run(t.Context(), []Subject{install(t, "hangs-at-edits")}, o)[0]
		wrong := slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool {
			hung := f.Feature == agent.Approval && f.Value == "auto-edit" || f.Feature == agent.Web && f.Value == "on"
			return (f.Verdict == Unknown) == hung &&
				(!hung || strings.Contains(f.Observed, "it did not end within "+clock.String()))
		})
		g.clean(t)
		if len(wrong) == 0 {
			return
		}
		if clock > 20*time.Second {
			t.Fatalf("%+v", wrong)
		}
	}
}

// TestWhatCannotBeTried: a sandbox that needs what is not here, or a container, or that cannot be told apart here.
func TestWhatCannotBeTried(t *testing.T) {
	t.Parallel()
	needs := func(names ...string) func(*agent.Matrix) {
		return func(m *agent.Matrix) {
			for i := range m.Rows {
				if m.Rows[i].Feature == agent.Sandbox && m.Rows[i].Value == "workspace-write" {
					m.Rows[i].OneShot.Needs = names
				}
			}
		}
	}
	for name, c := range map[string]struct {
		table func(*agent.Matrix)
		temp  bool
		why   string
	}{
		"missing": {needs("sh", "no-such-program"), false, "it needs no-such-program, not found in PATH"},
		"container": {
			needs("sh|docker"), false,
			"a container does not reach the model on this machine's loopback, and its image would be fetched",
		},
		"temporary": {
			nil, true,
			"the state directory lies in the system's temporary directory, where sandboxes let commands write",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGround(t)
			if c.temp {
				dir, err := os.MkdirTemp("/tmp", "omniagent-rehearsal-")
				if err != nil {
					t.Fatal(err)
				}
				defer os.RemoveAll(dir)
				g.state = dir
			}
			s := install(t, "good")
			d := s.Driver.(driver)
			d.table, s.Driver = c.table, nil
			s.Driver = d
			r := Run(t.Context(), []Subject{s}, g.options())[0]
			for _, f := range r.Findings {
				if f.Feature == agent.Sandbox && f.Value == "workspace-write" {
					if f.Verdict != Untried || f.Observed != c.why || f.Failed() {
						t.Errorf("%+v", f)
					}
				} else if f.Verdict != Holds {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// TestManyAtOnce: no more runs at a time than allowed, each agent for itself, and no word of the progress lost.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	o := g.options()
	o.Jobs = 3
	done := map[string]int{}
	ends := 0
	o.Tell = func(p Progress) { // never two at a time: the race detector looks on
		if p.Record != nil {
			ends++
			return
		}
		if done[p.Agent]++; p.Done != done[p.Agent] || p.Runs != len(trials()) {
			t.Errorf("%+v", p)
		}
	}
	var subjects []Subject
	for _, kind := range []string{"good", "liar", "dies", "silent"} {
		subjects = append(subjects, install(t, kind))
	}
	records := Run(t.Context(), subjects, o)
	for i, r := range records {
		if r.Agent != subjects[i].Driver.Name() {
			t.Errorf("%d is %s", i, r.Agent)
		}
	}
	if ends != 4 || done["stub-good"] != 7 || done["stub-dies"] != 1 {
		t.Error(ends, done)
	}
	if len(records[0].Failed()) != 0 || len(records[1].Failed()) != 1 || len(records[3].Failed()) != 1 {
		t.Errorf("%+v", records)
	}
	g.clean(t)
}

// TestPlaces: never more than there are, the heaviest first, and who gives up takes none away.
func TestPlaces(t *testing.T) {
	t.Parallel()
	p := newPlaces(2)
	var now, most atomic.Int32
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			ctx := t.Context()
			if i%5 == 0 {
				c, stop := context.WithCancel(ctx)
				ctx = c
				time.AfterFunc(time.Microsecond, stop)
			}
			if !p.take(ctx, time.Duration(i)) {
				return
			}
			for n := now.Add(1); ; {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			now.Add(-1)
			p.give()
		})
	}
	all.Wait()
	if p.free != 2 || len(p.waiting) != 0 || most.Load() > 2 {
		t.Errorf("%+v, %d at a time", p, most.Load())
	}
	for range 2000 { // a place that comes when nobody wants it any more goes to the next
		p := newPlaces(0)
		ctx, stop := context.WithCancel(t.Context())
		all.Go(func() {
			if p.take(ctx, 0) {
				p.give()
			}
		})
		for p.count() != 1 {
			runtime.Gosched()
		}
		all.Go(p.give)
		stop()
		all.Wait()
		if p.free != 1 {
			t.Fatal("a place is lost")
		}
	}
	one := newPlaces(1)
	one.take(t.Context(), 0)
	order := make(chan int, 3)
	for n, weight := range []int{1, 3, 2} {
		all.Go(func() { one.take(t.Context(), time.Duration(weight)); order <- weight; one.give() })
		for one.count() != n+1 {
			time.Sleep(time.Millisecond)
		}
	}
	one.give()
	all.Wait()
	if a, b, c := <-order, <-order, <-order; a != 3 || b != 2 || c != 1 {
		t.Error(a, b, c)
	}
}

func (p *places) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// TestTheCallEnds: what runs is ended at once, and nothing is left.
func TestTheCallEnds(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, stop)
	began := time.Now()
	r := Run(ctx, []Subject{install(t, "hangs"), install(t, "good")}, g.options())
	if took := time.Since(began); took > hermetic.Patience {
		t.Errorf("it took %v", took)
	}
	if f := find(t, r[0], agent.Approval, "yolo"); f.Verdict != Unknown {
		t.Errorf("%+v", f)
	}
	g.clean(t)
}

// TestFreshness: a record counts for the very program that was tried.
func TestFreshness(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	store := Store{State: filepath.Join(base, "state"), Tool: "1"}
	put := func(path, text string) string {
		t.Helper()
		path = filepath.Join(base, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := hermetic.WriteProgram(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script := put("lib/node_modules/agent/bin/agent.js", "#!/usr/bin/env node\n")
	put("lib/node_modules/agent/package.json",
		`{"name":"agent","optionalDependencies":{"agent-linux":"1","agent-other":"1","../../evil":"1"}}`)
	put("lib/node_modules/agent-linux/package.json", `{"name":"agent"}`)
	native := put("lib/node_modules/agent-linux/bin/agent", strings.Repeat("x", 1<<20+1))
	in := agent.Install{Path: script, RealPath: script, Version: "1.0.0"}
	save := func() {
		t.Helper()
		files, err := allow.Fingerprint(script)
		if err != nil || len(files) != 4 || files[3].Path != native {
			t.Fatalf("%v %+v", err, files)
		}
		if err := store.Save(Record{
			Schema: schema, Agent: "x", Version: in.Version, RealPath: in.RealPath,
			Program: files, Tool: "1", Machine: here(),
		}); err != nil {
			t.Fatal(err)
		}
	}
	state := func(s Store, in agent.Install) Freshness { _, f := s.Load("x", in); return f }
	if f := state(store, in); f != Never {
		t.Error(f)
	}
	save()
	if f := state(store, in); f != Fresh {
		t.Error(f)
	}
	if _, f := store.Load("y", in); f != Never {
		t.Error(f)
	}
	other := in
	other.Version = "1.0.1"
	if f := state(store, other); f != OtherVersion {
		t.Error(f)
	}
	other = in
	other.RealPath = native
	if f := state(store, other); f != OtherProgram {
		t.Error(f)
	}
	if f := state(Store{store.State, "2"}, in); f != OtherTool {
		t.Error(f)
	}
	// The same content in a new file is the same program; the same size is not.
	if err := os.Remove(native); err != nil {
		t.Fatal(err)
	}
	put("lib/node_modules/agent-linux/bin/agent", strings.Repeat("x", 1<<20+1))
	if f := state(store, in); f != Fresh {
		t.Error(f)
	}
	put("lib/node_modules/agent-linux/bin/agent", strings.Repeat("x", 1<<20)+"y")
	if f := state(store, in); f != OtherProgram {
		t.Error(f)
	}
	save()
	put("lib/node_modules/agent/package.json", `{"name":"agent","optionalDependencies":{"agent-linux":"2"}}`)
	if f := state(store, in); f != OtherProgram {
		t.Error(f)
	}
	put("lib/node_modules/agent/package.json",
		`{"name":"agent","optionalDependencies":{"agent-linux":"1","agent-other":"1","../../evil":"1"}}`)
	save()
	r, _ := store.Load("x", in)
	r.Machine.Kernel += "x"
	if err := store.Save(r); err != nil {
		t.Fatal(err)
	}
	if f := state(store, in); f != OtherMachine {
		t.Error(f)
	}
	for _, text := range []string{"", "{", `{"schema":2,"agent":"x"}`, `{"schema":1,"agent":"y"}`} {
		put("state/rehearsals/x.json", text)
		if f := state(store, in); f != Never {
			t.Errorf("%q: %s", text, f)
		}
	}
	if err := (Store{}).Save(Record{}); err == nil {
		t.Error("kept nowhere")
	}
}
