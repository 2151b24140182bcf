package walls

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/testkit/measure"
)

// program is the built program.
var program string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case weaker:
			fmt.Fprintln(os.Stderr, weaken(os.Args[2], os.Args[3:]))
			os.Exit(3)
		case flipper:
			flipUntilTheEnd(os.Args[2])
			return
		}
	}
	os.Exit(measure.WithProgram("../..", func(file string) int {
		program = file
		return hermetic.Sample(m, "TestNothingLeaves", "TestWithoutWalls", "TestRepositoriesBeneathWork")
	}))
}

// TestSources lets the result depend on the sources of the program.
func TestSources(t *testing.T) {
	if err := measure.Sources("../.."); err != nil {
		t.Fatal(err)
	}
}

const (
	weaker  = "start-in-a-weaker-place"
	flipper = "flip-links"
)

// tier is a place with less and less for walls to stand on.
type tier struct {
	name   string // of the walls that stand there
	weaker string // how the place is made; empty: it is this machine as it is
}

func namespaces() tier { return tier{"namespaces", ""} }
func landlock() tier   { return tier{"landlock", "without-namespaces"} }

// masked is where /proc is partly covered, as in containers: no other one can be mounted.
func masked() tier { return tier{"namespaces", "masked-processes"} }

// weaken makes this process's own place weaker, and becomes the program.
func weaken(how string, argv []string) error {
	var err error
	switch how {
	case "without-namespaces":
		err = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	case "masked-processes":
		if err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err == nil {
			err = unix.Mount("/dev/null", "/proc/timer_list", "", unix.MS_BIND, "")
		}
	}
	if err != nil {
		return err
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// canary stands where nobody but the user may read. It is made of two parts, so that no process has it in its
// arguments.
func canary() string { return "canary" + "-of-the-user-2718" }

// variable stands in the environment of the program, which therefore knows it for a secret and masks it. The other one
// is not known: what is not seen of that was not read.
func variable() string { return "variable" + "-of-the-user-1618" }

// ground is a home, a workspace, and a world outside of it. It is not below /tmp, which commands do not see.
type ground struct {
	base, home, work, out, temp string
	env                         []string
	world                       *world // nil: nobody listens
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newGround(t testing.TB) *ground {
	t.Helper()
	here, err := os.Getwd()
	must(t, err)
	base := ""
	for _, dir := range []string{here, os.Getenv("HOME"), "/var/lib"} {
		if made, err := os.MkdirTemp(dir, ".test-"); err == nil && dir != "" && !strings.HasPrefix(made, "/tmp/") &&
			!strings.HasPrefix(made, "/var/tmp/") {
			base = made
			break
		} else if err == nil {
			must(t, os.Remove(made))
		}
	}
	if base == "" {
		t.Skip("there is no place to write outside /tmp")
	}
	t.Cleanup(func() {
		_ = unix.Unmount(base+"/work/sub", unix.MNT_DETACH) // an attack that came through
		must(t, os.RemoveAll(base))
	})
	g := &ground{base: base, home: base + "/home", work: base + "/work", out: base + "/out", temp: base + "/temp"}
	for path, content := range map[string]string{
		"home/.ssh/id_ed25519": canary() + "\n", "home/plain": "of the user\n", "out/file": "outside\n",
		"out/deep/file": "outside\n", "work-evil/file": "outside\n",
		"work/a.txt": "plain\n", "work/sub/b.txt": "plain\n",
		"work/.git/HEAD":   "ref: refs/heads/main\n",
		"work/.git/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n", "work/.git/objects/.keep": "",
		"work/.git/refs/.keep":  "",
		"work/.git/hooks/.keep": "",
	} {
		g.write(t, filepath.Join(base, path), content)
	}
	must(t, os.Mkdir(g.work+"/marks", 0o700))
	must(t, os.Mkdir(g.temp, 0o700))
	g.env = []string{
		"HOME=" + g.home, "PATH=/usr/bin:/bin:" + os.Getenv("PATH"), "TMPDIR=" + g.temp,
		"OPENAI_API_KEY=k", "SECRET_TOKEN=" + variable(),
	}
	return g
}

func (g *ground) write(t testing.TB, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	syscall.ForkLock.RLock() // a child that began meanwhile would have it open, and it could not be started
	err := os.WriteFile(path, []byte(content), 0o600)
	syscall.ForkLock.RUnlock()
	must(t, err)
}

// rules are those of the user's own configuration.
func (g *ground) rules(t testing.TB, lines string) {
	t.Helper()
	g.write(t, g.home+"/.config/omniagent/config.toml", "[native]\n"+lines)
}

// fill puts what is known of the ground into a line.
func (g *ground) fill(line, mark string) string {
	pairs := []string{
		"{base}", g.base, "{home}", g.home, "{work}", g.work, "{out}", g.out, "{temp}", g.temp, "{m}",
		mark,
	}
	if g.world != nil {
		pairs = append(pairs, "{port}", g.world.port(), "{udp}", g.world.udpPort(), "{socket}", g.world.socket,
			"{abstract}", g.world.abstract)
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

func inNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

// unshares reports whether a weaker place can be made here.
func unshares() bool {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = inNamespace()
	return cmd.Run() == nil
}

// command is the program in a place of a tier.
func (g *ground) command(where tier, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	if where.weaker != "" && unshares() { // where that cannot be done, this machine may be such a place itself
		cmd = exec.Command("/proc/self/exe", append([]string{weaker, where.weaker, program}, args...)...)
		cmd.SysProcAttr = inNamespace()
	}
	cmd.Env, cmd.Dir = g.env, g.work
	return cmd
}

// answer is the data of a command that prints an envelope.
func (g *ground) answer(t testing.TB, where tier, into any, args ...string) (meta claim) {
	t.Helper()
	at := slices.Index(args, "--") // what follows is not a flag
	if at < 0 {
		at = len(args)
	}
	cmd := g.command(where, slices.Insert(slices.Clone(args), at, "--output", "json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var envelope struct {
		Data json.RawMessage
		Meta struct{ Sandbox claim }
	}
	if json.Unmarshal(out, &envelope) != nil || json.Unmarshal(envelope.Data, into) != nil {
		t.Fatalf("%v: %v\n%s\n%s", args, err, out, stderr.String())
	}
	return envelope.Meta.Sandbox
}

// modes are the permission modes in which the model attacks: what runs in default without asking runs in auto as well,
// so that auto alone is enough for every day.
func modes() []string {
	if hermetic.Matrices() {
		return []string{"auto", "default"}
	}
	return []string{"auto"}
}

// claim is what the program says of walls.
type claim struct {
	Name    string   `json:"name"`
	Network string   `json:"network"`
	Holes   []string `json:"holes"`
}

// looked is what needs has found out, by tier: why it cannot be had, or nothing.
var looked struct {
	sync.Mutex
	why map[tier]string
}

// needs skips where the walls of a tier cannot be built, and says why.
func needs(t *testing.T, where tier) {
	t.Helper()
	looked.Lock()
	defer looked.Unlock()
	why, known := looked.why[where]
	if !known {
		if looked.why == nil {
			looked.why = map[tier]string{}
		}
		why = lacks(t, where)
		looked.why[where] = why
	}
	if why != "" {
		t.Skip(why)
	}
}

func lacks(t *testing.T, where tier) string {
	t.Helper()
	g := newGround(t)
	var said struct {
		Walls claim
		Error *string `json:"walls_error"`
	}
	cmd := g.command(where, "--version")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("the place %s cannot be made here: %v %s", where.weaker, err, out)
	}
	g.answer(t, where, &said, "sandbox", "explain", ".")
	if said.Walls.Name != where.name {
		why := ""
		if said.Error != nil {
			why = *said.Error
		}
		return fmt.Sprintf("the walls %s cannot be built here, but %s: %s", where.name, said.Walls.Name, why)
	}
	return ""
}

// inTiers runs a test in each of the tiers.
func inTiers(t *testing.T, test func(t *testing.T, where tier), tiers ...tier) {
	t.Helper()
	t.Parallel()
	for _, where := range tiers {
		t.Run(where.name, func(t *testing.T) {
			t.Parallel()
			needs(t, where)
			test(t, where)
		})
	}
}

// outcome is what a turn came to.
type outcome struct {
	out, stderr string
	exit        int
	init        map[string]any
	results     []toolResult
	requests    []string
}

type toolResult struct {
	Content string `json:"content"`
	Failed  bool   `json:"is_error"`
}

const patience = hermetic.Patience

// model is a scripted one.
func model(t testing.TB, steps []string) *modelserver.Server {
	t.Helper()
	script, err := modelserver.ParseScript([]byte("[" + strings.Join(append(slices.Clone(steps), `{"say":"done"}`),
		",") + "]"))
	must(t, err)
	server, err := modelserver.Start(script, modelserver.Options{Hurry: true})
	must(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// turn has the model take the steps.
func (g *ground) turn(t testing.TB, where tier, steps []string, args ...string) outcome {
	t.Helper()
	server := model(t, steps)
	cmd := g.command(where,
		append([]string{
			"start", "--provider", "openai", "--model", "m", "--api-base", server.URL() + "/v1", "-p",
			"go",
		}, args...)...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &stderr, time.Second
	must(t, cmd.Start())
	clock := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	if !clock.Stop() {
		t.Fatalf("it does not end:\n%s\n%s", out.String(), stderr.String())
	}
	o := outcome{out: out.String(), stderr: stderr.String(), exit: cmd.ProcessState.ExitCode()}
	for line := range strings.Lines(o.out) {
		var m struct {
			Type, Subtype string
			toolResult
		}
		if json.Unmarshal([]byte(line), &m) != nil {
			continue
		}
		switch {
		case m.Type == "tool_result":
			o.results = append(o.results, m.toolResult)
		case m.Subtype == "init":
			must(t, json.Unmarshal([]byte(line), &o.init))
		}
	}
	for _, q := range server.Requests() {
		o.requests = append(o.requests, string(q.Raw))
	}
	return o
}

// bash is a step that runs a line.
func bash(line string) string { return call("Bash", map[string]any{"command": line}) }

// together makes of steps that call tools fewer answers, each with some of the calls: they run in their order all the
// same.
func together(steps []string) (answers []string) {
	for some := range slices.Chunk(steps, 12) {
		answers = append(answers, `{"calls":[`+strings.Join(some, ",")+`]}`)
	}
	return answers
}

// call is a step that calls a tool.
func call(name string, input map[string]any) string {
	text, err := json.Marshal(map[string]any{"call": map[string]any{"name": name, "input": input}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// say is a step that says a text.
func say(text string) string {
	quoted, err := json.Marshal(map[string]string{"say": text})
	if err != nil {
		panic(err)
	}
	return string(quoted)
}
