// Command relay prints what a conversation through us costs beside one with the agent itself: the times to the first
// event and to the first word, on the scripted model, and the cost of an event, of a line of 100 MB and of a host that
// reads slowly.
//
//	go run ./bench/relay [-n 9] [-agents DIR]
//
// DIR holds the programs of the agents; without it only what needs none is measured.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"omniagent/internal/agents/claude"
	"omniagent/internal/agents/codex"
	"omniagent/internal/agents/copilot"
	"omniagent/internal/agents/gemini"
	"omniagent/internal/agents/opencode"
	"omniagent/internal/agents/relay"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/host/stream"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
	"omniagent/internal/sys/process"
	"omniagent/internal/talk/conversation"
	"omniagent/internal/talk/session"
)

func main() {
	if process.IsGuard(os.Args) {
		os.Exit(process.Guard())
	}
	n := flag.Int("n", 9, "start each agent `N` times, in turn")
	dir := flag.String("agents", os.Getenv("OMNIAGENT_TEST_AGENTS"), "`DIR` of the agents' programs")
	flag.Parse()
	if err := lines(); err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		os.Exit(1)
	}
	if *dir == "" {
		fmt.Println("the time to the first event was not measured: there is no -agents")
		return
	}
	for _, d := range []agent.Driver{claude.New(), codex.New(), gemini.New(), copilot.New(), opencode.New()} {
		if err := first(d, *dir, *n); err != nil {
			fmt.Fprintf(os.Stderr, "relay: %s: %v\n", d.Name(), err)
			os.Exit(1)
		}
	}
}

// lines measures what passes through.
func lines() error {
	piece := []byte(
		`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of it "}},` +
			`"session_id":"d72cb6b5-8bd8-4597-ab0f-6b0f09b4342a","parent_tool_use_id":null,"uuid":"218752f9-e4b7-451b-bfde-e7852f549bfb"}` + "\n")
	data := bytes.Repeat(piece, 100_000)
	const block = 64 << 10
	pass := func(write func([]byte)) time.Duration {
		best := time.Hour
		for range 5 {
			began := time.Now()
			for i := 0; i < len(data); i += block {
				write(data[i:min(i+block, len(data))])
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	scan := pass(func(p []byte) {
		for i := bytes.IndexByte(p, '\n'); i >= 0; i = bytes.IndexByte(p, '\n') {
			p = p[i+1:]
		}
	})
	watch := relay.NewWatch(io.Discard)
	same := pass(func(p []byte) { _, _ = watch.Write(p) })
	events := 0
	decoder := claude.New().Decode(setting.StreamJSON)
	decoded := pass(func(p []byte) { events += len(decoder.Feed(p)) })
	recorded, err := recordedPass(pass)
	if err != nil {
		return err
	}
	speed := func(d time.Duration) float64 { return float64(len(data)) / d.Seconds() / 1e9 }
	fmt.Printf("ends of lines alone   %6.2f GB/s\n", speed(scan))
	fmt.Printf("relayed               %6.2f GB/s  %.2f of it, %.0f ns a line\n", speed(same),
		float64(scan)/float64(same), float64(same.Nanoseconds())/100_000)
	fmt.Printf("decoded               %6.2f GB/s  %.2f µs an event\n", speed(decoded),
		float64(decoded.Microseconds())/100_000)
	fmt.Printf("recorded              %6.2f GB/s  %.2f µs an event, beside the lines\n", speed(recorded),
		float64(recorded.Microseconds())/100_000)
	long := []byte(`{"type":"assistant","x":"` + strings.Repeat("x", 100<<20) + "\"}\n")
	began := time.Now()
	for i := 0; i < len(long); i += block {
		_, _ = watch.Write(long[i:min(i+block, len(long))])
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("a line of 100 MB      %6.0f ms, relayed; %d MiB from the system since the start\n",
		float64(time.Since(began).Milliseconds()), m.Sys>>20)
	return slow(data)
}

// recordedPass puts the lines on record while they pass.
func recordedPass(pass func(write func([]byte)) time.Duration) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "omniagent-relay-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	journal, err := session.Open(dir).Unlinked(session.Begin{Agent: "claude"})
	if err != nil {
		return 0, err
	}
	r := stream.Record(conversation.Record(journal,
		func(format string, args ...any) { err = fmt.Errorf(format, args...) }),
		claude.New().Decode(setting.StreamJSON))
	watch := relay.NewWatch(io.Discard)
	took := pass(func(p []byte) {
		_, _ = watch.Write(p)
		r.Agent(p)
	})
	if closed := r.Close(); err == nil {
		err = closed
	}
	return took, err
}

// slow is a host that takes a nap at every event, in front of an agent that prints as fast as it can.
func slow(data []byte) error {
	file, err := os.CreateTemp("", "omniagent-relay-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(data); err != nil {
		return err
	}
	out := &sleepy{}
	cat, err := exec.LookPath("cat")
	if err != nil {
		return err
	}
	began := time.Now()
	r := relay.Relay{
		Launch: agent.Launch{Path: cat, Args: []string{file.Name()}, Env: os.Environ()}, Name: "cat",
		In: strings.NewReader(""), Out: out, UntilEOF: true,
		Log: func(string, ...any) {},
	}
	if _, err := r.Run(context.Background()); err != nil {
		return err
	}
	if out.bytes != len(data) {
		return fmt.Errorf("%d bytes of %d arrived", out.bytes, len(data))
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("a slow reader         %6.0f ms for %d MB, all of it arrived; %d MiB of heap\n",
		float64(time.Since(began).Milliseconds()), len(data)/1e6, m.HeapInuse>>20)
	return nil
}

type sleepy struct{ bytes int }

func (s *sleepy) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	s.bytes += len(p)
	return len(p), nil
}

// first measures the times from the start to the first event, which tells the session, and to the first that the model
// had a part in, through us and alone, in turn.
func first(d agent.Driver, dir string, n int) error {
	script, err := modelserver.ParseScript([]byte(`[{"say":"hello"}]`))
	if err != nil {
		return err
	}
	server, err := modelserver.Start(script, modelserver.Options{Hurry: true})
	if err != nil {
		return err
	}
	defer server.Close()
	// codex makes no home below the system's temporary directory
	base, err := os.MkdirTemp("/var/tmp", "omniagent-relay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(base)
	work := filepath.Join(base, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	if err := exec.Command("git", "init", "-q", work).Run(); err != nil {
		return err
	}
	env := []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + base, "IS_SANDBOX=1"}
	lookup := process.In(env)
	in, err := d.Locate(agent.Env{Lookup: lookup, Dir: work})
	if err != nil {
		return err
	}
	spec := agent.Spec{
		Install: in, Dir: work, Env: env, Temp: filepath.Join(base, "private"), Mode: setting.OneShot,
		Terms:     agent.Terms{Mode: setting.Prompt},
		Machine:   agent.Machine{Root: true, OS: runtime.GOOS, Has: func(string) bool { return false }},
		Rehearsal: &agent.Rehearsal{URL: server.URL(), Key: "sk-rehearsal-0123456789", Model: "gpt-5", Home: base},
	}
	spec.Shared.Output = setting.Chosen[setting.Output]{Value: setting.StreamJSON}
	return compare(d, spec, n)
}

// compare runs it in each way, in turn, and prints the medians.
func compare(d agent.Driver, spec agent.Spec, n int) error {
	ways := []way{
		{"through us", func() (moments, error) { return ours(d, spec) }},
		{"alone", func() (moments, error) { return theirs(d, spec) }},
	}
	if program := spec.Install.Program; program != "" {
		direct := spec
		direct.Install.Path = program
		ways = append(ways, way{"alone, without its script", func() (moments, error) { return theirs(d, direct) }})
	}
	if d.Name() == "codex" {
		ways = append(ways, way{"its app-server alone", func() (moments, error) { return served(d, spec) }})
	}
	took := make([][]moments, len(ways))
	for i := range n + 1 {
		for w := range ways {
			m, err := ways[w].run()
			if err != nil {
				return err
			}
			if i > 0 { // the first of each fills caches
				took[w] = append(took[w], m)
			}
		}
	}
	for _, moment := range []struct {
		name string
		of   func(moments) time.Duration
	}{
		{"first event", func(m moments) time.Duration { return m.started }},
		{"first word", func(m moments) time.Duration { return m.word }},
	} {
		fmt.Printf("%-8s %-12s", d.Name(), moment.name)
		us := median(took[0], moment.of)
		for w := range ways {
			m := median(took[w], moment.of)
			fmt.Printf("  %s %v", ways[w].name, m.Round(time.Millisecond))
			if w > 0 {
				fmt.Printf(" (%.2f times)", float64(us)/float64(m))
			}
		}
		fmt.Println()
	}
	return nil
}

// moments are counted from the start.
type moments struct{ started, word time.Duration }

type way struct {
	name string
	run  func() (moments, error)
}

func median(all []moments, of func(moments) time.Duration) time.Duration {
	var took []time.Duration
	for _, m := range all {
		took = append(took, of(m))
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// ours is a turn of the Mind. What follows its first word is waited for, but not measured.
func ours(d agent.Driver, s agent.Spec) (m moments, err error) {
	began := time.Now()
	var once sync.Once
	mind, err := d.Mind(context.Background(), s, agent.Services{CanAsk: true, Tell: func(e event.Event) {
		switch e.Kind {
		case event.Started:
			m.started = time.Since(began)
		case event.Text:
			once.Do(func() { m.word = time.Since(began) })
		}
	}})
	if err != nil {
		return m, err
	}
	defer mind.Close(context.Background())
	if err := mind.Turn(context.Background(), []event.Block{{Text: "go"}}); err != nil {
		return m, err
	}
	if m.word == 0 {
		return m, errors.New("the turn ended without an answer")
	}
	return m, nil
}

// theirs is the agent's own one-shot run, whose lines are looked at for the first event and the first word of the
// answer.
func theirs(d agent.Driver, s agent.Spec) (m moments, err error) {
	launch, _, err := d.Command(s)
	if err != nil {
		return m, err
	}
	for _, f := range launch.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
			return m, err
		}
		if err := os.WriteFile(f.Path, f.Data, 0o600); err != nil {
			return m, err
		}
	}
	if d.Name() == "claude" {
		launch.Args = append(launch.Args, "--include-partial-messages")
	}
	cmd := exec.Command(launch.Path, launch.Args...)
	cmd.Env, cmd.Dir, cmd.Stdin = launch.Env, launch.Dir, strings.NewReader("go")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { _ = cmd.Wait() }()
	decode := d.Decode(setting.StreamJSON)
	for buf := make([]byte, 64<<10); ; {
		n, err := out.Read(buf)
		at := time.Since(began)
		for _, e := range decode.Feed(buf[:n]) {
			switch {
			case e.Kind == event.Started && m.started == 0:
				m.started = at
			case e.Kind == event.Text && m.word == 0:
				m.word = at
			}
		}
		if err != nil {
			break
		}
	}
	if m.word == 0 {
		return m, errors.New("alone it gave no answer")
	}
	return m, nil
}

// served is codex app-server with a host that says the least: what codex itself offers to those who want to be asked.
func served(d agent.Driver, s agent.Spec) (m moments, err error) {
	launch, _, err := d.Command(s)
	if err != nil {
		return m, err
	}
	args := []string{"app-server"}
	for i, arg := range launch.Args[:len(launch.Args)-1] {
		if arg == "-c" {
			args = append(args, arg, launch.Args[i+1])
		}
	}
	cmd := exec.Command(launch.Path, args...)
	cmd.Env, cmd.Dir = launch.Env, launch.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		return m, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return m, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return m, err
	}
	defer func() { _ = in.Close(); _ = cmd.Wait() }()
	say := func(line string) { _, _ = in.Write([]byte(line + "\n")) }
	say(`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"bench","title":"bench","version":"1"}}}`)
	say(`{"method":"initialized"}`)
	say(`{"id":2,"method":"thread/start","params":{"cwd":` + strconv.Quote(s.Dir) +
		`,"sandbox":"read-only","approvalPolicy":"on-request"}}`)
	lines := json.NewDecoder(out)
	for {
		var line struct {
			ID     int
			Method string
			Result struct{ Thread struct{ ID string } }
		}
		if err := lines.Decode(&line); err != nil {
			return m, errors.New("app-server gave no answer")
		}
		switch {
		case line.ID == 2:
			m.started = time.Since(began)
			say(`{"id":3,"method":"turn/start","params":{"threadId":` + strconv.Quote(line.Result.Thread.ID) +
				`,"input":[{"type":"text","text":"go"}]}}`)
		case line.Method == "item/agentMessage/delta":
			m.word = time.Since(began)
			return m, nil
		}
	}
}
