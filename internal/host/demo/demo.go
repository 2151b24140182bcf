// Package demo shows what this program can do, in scenes that actually run.
//
// It reports only what it has observed on this machine: each scene starts this program with a command line that a
// person could type, checks exit codes, records and files, and reports what was not as expected. It needs no key, no
// other program and no network. The scenes have their own home in a private directory, and an environment without the
// user's settings.
//
// The text says what is not real: this program stands in for a coding CLI, and a script for a model.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/host/shim"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/wire/yume"
)

// Stage is the directory and the environment of the scenes.
type Stage struct {
	Self string // the path of this program
	Dir  string // an absolute path of a private, empty directory
	Path string // PATH, in which the scenes need a shell and the standard programs
	// Run starts a program to its end; the environment is complete.
	Run func(ctx context.Context, dir string, env []string, argv ...string) (process.Result, error)
}

// Scene is a scene that was played.
type Scene struct {
	Name      string   `json:"name" enum:"blocked,walls,task"`
	Title     string   `json:"title"`
	About     string   `json:"about" doc:"what is played, and what stands in for what"`
	OK        bool     `json:"ok" doc:"all was seen that the scene claims"`
	Steps     []Step   `json:"steps"`
	Script    *string  `json:"script" doc:"what the model is told to say; null: there is no model"`
	Files     []File   `json:"files" doc:"looked at by the demo itself, not by the agent"`
	Seen      []string `json:"seen" doc:"what happened, in sentences"`
	Different []string `json:"different" doc:"what was not as expected"`

	took time.Duration
}

// Step is a command that ran.
type Step struct {
	Command   string `json:"command" doc:"as a person would type it"`
	Expected  string `json:"expected"`
	Observed  string `json:"observed"`
	Exit      int    `json:"exit_code"`
	AgentExit *int   `json:"agent_exit_code" doc:"what the agent itself ended with, where another program ran it"`
	Stdout    string `json:"stdout" doc:"empty where it is a stream, of which calls are what matters"`
	Stderr    string `json:"stderr"`
	Calls     []Call `json:"calls" doc:"tools that the model called"`

	input, output int64 // tokens
}

// Call is a tool call and its result.
type Call struct {
	Tool   string `json:"tool"`
	Target string `json:"target" doc:"the command or the path"`
	Failed bool   `json:"failed"`
	Output string `json:"output"`
}

// File is a file that a scene is about.
type File struct {
	Name   string  `json:"name" doc:"relative to the workspace of the scene"`
	Before *string `json:"before" doc:"null: it was not there"`
	After  *string `json:"after"`
}

// Measured is how long a scene took, and the tokens of its model. It differs from run to run, so it does not belong to
// the scene.
type Measured struct {
	Scene  string `json:"scene"`
	TookMS int64  `json:"took_ms"`
	Input  int64  `json:"input_tokens"`
	Output int64  `json:"output_tokens"`
}

// Measured returns the measurements of the scene.
func (sc Scene) Measured() Measured {
	m := Measured{Scene: sc.Name, TookMS: sc.took.Milliseconds()}
	for _, step := range sc.Steps {
		m.Input, m.Output = m.Input+step.input, m.Output+step.output
	}
	return m
}

// Play plays all scenes. The error is one of the stage; a scene contains its own failures.
func (s Stage) Play(ctx context.Context) ([]Scene, error) {
	if err := s.build(); err != nil {
		return nil, err
	}
	var scenes []Scene
	p := &player{Stage: s}
	for _, play := range []func(context.Context) Scene{p.blocked, p.walls, p.task} {
		began := time.Now()
		scene := play(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		scene.OK, scene.took = len(scene.Different) == 0, time.Since(began)
		scenes = append(scenes, scene)
	}
	return scenes, nil
}

// player plays the scenes, and keeps what earlier ones have found.
type player struct {
	Stage
	bare bool // this machine has no sandbox
}

// The directories of the stage.
func (s Stage) bin() string               { return filepath.Join(s.Dir, "bin") }
func (s Stage) home() string              { return filepath.Join(s.Dir, "home") }
func (s Stage) work(scene string) string  { return filepath.Join(s.home(), scene) }
func (s Stage) beside(file string) string { return filepath.Join(s.home(), file) }
func (s Stage) file(parts ...string) string {
	return filepath.Join(append([]string{s.home()}, parts...)...)
}

func (s Stage) build() error {
	dirs := []string{s.bin(), filepath.Join(s.Dir, "tmp")}
	for _, scene := range []string{"blocked", "walls", "task"} {
		// a project of its own, even if the user's home is one
		dirs = append(dirs, filepath.Join(s.work(scene), ".git"))
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fault.New(fault.PermissionDenied, "the demo has no place to work in").Because(err)
		}
	}
	for _, name := range []string{"omniagent", standInName} {
		if err := named(s.Self, filepath.Join(s.bin(), executable(name))); err != nil {
			return fault.New(fault.PermissionDenied, "this program cannot be given the name %s", name).Because(err)
		}
	}
	return nil
}

// named gives a program another name.
func named(program, path string) error {
	if err := os.Symlink(program, path); err == nil {
		return nil
	}
	return os.Link(program, path) // on Windows few users may create symbolic links
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// env returns the whole environment of a scene.
func (s Stage) env(more ...string) []string {
	temp := filepath.Join(s.Dir, "tmp")
	env := []string{
		"PATH=" + s.bin() + string(filepath.ListSeparator) + s.Path, "HOME=" + s.home(), "USERPROFILE=" +
			s.home(), "USER=demo",
		"TMPDIR=" + temp, "TMP=" + temp, "TEMP=" + temp, "LC_ALL=C", "NO_COLOR=1", "TERM=dumb",
	}
	for _, name := range []string{"SystemRoot", "PATHEXT", "ComSpec"} {
		if v, ok := os.LookupEnv(name); ok && runtime.GOOS == "windows" {
			env = append(env, name+"="+v)
		}
	}
	return append(env, more...)
}

// put writes files of a scene, by their paths.
func (sc *Scene) put(files map[string]string) bool {
	for path, text := range files {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			sc.differ("%v", fault.New(fault.PermissionDenied, "the demo cannot write its files").Because(err))
			return false
		}
	}
	return true
}

// look returns the content of a file, or nil if it cannot be read.
func look(path string) *string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return new(string(data))
}

// differ records an unexpected result.
func (sc *Scene) differ(format string, args ...any) {
	sc.Different = append(sc.Different, fmt.Sprintf(format, args...))
}

func (sc *Scene) saw(format string, args ...any) {
	sc.Seen = append(sc.Seen, fmt.Sprintf(format, args...))
}

// run starts a command of a scene and checks how it ended.
func (s *player) run(ctx context.Context, sc *Scene, expected int, env []string, argv ...string) (*Step, bool) {
	step := Step{Command: text.Shell(argv...), Expected: fmt.Sprintf("exit code %d", expected)}
	program := append([]string{filepath.Join(s.bin(), executable(argv[0]))}, argv[1:]...)
	result, err := s.Run(ctx, s.work(sc.Name), env, program...)
	step.Exit = result.ExitCode
	// use paths relative to the workspace, because the stage has another path each time
	there := strings.NewReplacer(s.home()+string(filepath.Separator), "../")
	step.Stdout, step.Stderr = there.Replace(string(result.Stdout)), there.Replace(string(result.Stderr))
	step.Observed = fmt.Sprintf("exit code %d", result.ExitCode)
	if result.Signal != "" {
		step.Observed = result.Signal
	}
	sc.Steps = append(sc.Steps, step)
	kept := &sc.Steps[len(sc.Steps)-1]
	switch {
	case err != nil:
		kept.Observed = err.Error()
		sc.differ("%s could not be run: %v", argv[0], err)
		return kept, false
	case result.ExitCode != expected || result.Signal != "":
		sc.differ("%s ended with %s, not with %s%s", argv[0], kept.Observed, kept.Expected, because(step.Stderr))
		return kept, false
	}
	return kept, true
}

// because returns the first informative line of the output.
func because(printed string) string {
	for line := range strings.Lines(printed) {
		if line = strings.TrimSpace(line); line != "" && line != "[stderr]" &&
			!strings.HasPrefix(line, "Command exited with code") {
			return ": " + line
		}
	}
	return ""
}

// reported runs this program with a report, and returns the report.
func (s *player) reported(ctx context.Context, sc *Scene, expected int, env []string, argv ...string) (*Step,
	shim.Report, bool,
) {
	var report shim.Report
	name := sc.Name + ".json"
	step, ok := s.run(ctx, sc, expected, env, append(argv, "--report=../"+name)...)
	if workspace.ReadJSON(s.beside(name), 1<<20, &report) != nil {
		if ok {
			sc.differ("there is no report of the run")
		}
		return step, report, false
	}
	step.AgentExit = report.AgentExit
	if report.Usage != nil {
		step.input, step.output = report.Usage.Input, report.Usage.Output
	}
	return step, report, ok
}

// calls reads the tool calls from the stream that a step printed.
func (step *Step) calls() {
	place := map[string]int{}
	for _, e := range (&yume.Decoder{}).Feed([]byte(step.Stdout)) {
		switch e.Kind {
		case event.ToolCall:
			place[e.Call.ID] = len(step.Calls)
			step.Calls = append(step.Calls, Call{Tool: e.Call.Name, Target: target(e.Call)})
		case event.ToolResult:
			if at, known := place[e.Result.ID]; known {
				step.Calls[at].Failed, step.Calls[at].Output = e.Result.Failed, e.Result.Output
			}
		}
	}
	step.Stdout = ""
}

// target returns the command or file of a call.
func target(c *event.Call) string {
	var input struct {
		Command string `json:"command"`
		Path    string `json:"file_path"`
	}
	_ = json.Unmarshal(c.Input, &input)
	if input.Command != "" {
		return input.Command
	}
	return filepath.Base(input.Path)
}
