//go:build unix

package demo_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/cli/command"
	"omniagent/internal/host/demo"
	"omniagent/internal/sys/process"
)

// TestMain lets this program be the one that the scenes start.
func TestMain(m *testing.M) {
	if !strings.HasSuffix(os.Args[0], ".test") {
		os.Exit(command.Main())
	}
	os.Exit(m.Run())
}

func stage(t *testing.T) demo.Stage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return demo.Stage{
		Self: self, Dir: t.TempDir(), Path: "/usr/bin:/bin",
		Run: func(ctx context.Context, dir string, env []string, argv ...string) (process.Result, error) {
			by := process.Programs{Env: append(env, "GORACE=atexit_sleep_ms=0")}
			return by.Run(ctx, process.Spec{Argv: argv, Dir: dir})
		},
	}
}

func play(t *testing.T, s demo.Stage) map[string]demo.Scene {
	t.Helper()
	scenes, err := s.Play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]demo.Scene{}
	for _, sc := range scenes {
		named[sc.Name] = sc
	}
	return named
}

// TestWithoutWalls: nothing is claimed of walls where the record of the run says that there were none, and nothing may
// have run.
func TestWithoutWalls(t *testing.T) {
	for name, exit := range map[string]int{"denied": 3, "it ran": 0} {
		t.Run(name, func(t *testing.T) {
			s := stage(t)
			run, sandbox := s.Run, ""
			s.Run = func(ctx context.Context, dir string, env []string, argv ...string) (process.Result, error) {
				r, err := run(ctx, dir, env, argv...)
				line := strings.Join(argv, " ")
				report := filepath.Join(filepath.Dir(dir), "walls.json")
				switch {
				case strings.Contains(line, "leave.json"):
					// As it is on a machine without walls: these lines are all that the scene knows of them.
					r.ExitCode = exit
					if err := os.WriteFile(report, []byte(`{"sandbox":{"name":"none"}}`), 0o600); err != nil {
						t.Fatal(err)
					}
				case strings.Contains(line, "fix.json"):
					_, after, _ := strings.Cut(line, "--sandbox ")
					sandbox, _, _ = strings.Cut(after, " ")
				}
				return r, err
			}
			scenes := play(t, s)
			sc := scenes["walls"]
			if sc.OK != (exit == 3) || !strings.HasPrefix(sc.Title, "No walls can be built") ||
				strings.Contains(strings.Join(sc.Seen, " "), "is not there") {
				t.Errorf("%+v", sc)
			}
			if last := sc.Steps[len(sc.Steps)-1]; !strings.HasPrefix(last.Command, "omniagent sandbox explain") ||
				!strings.Contains(last.Stdout, "the rules say") {
				t.Errorf("%+v", last)
			}
			if sandbox != "off" {
				t.Errorf("the task asks for the sandbox %q", sandbox)
			}
		})
	}
}

// TestNotBelieved: a stand-in other than a CLI, and a program that cannot be started, are reported.
func TestNotBelieved(t *testing.T) {
	s := stage(t)
	run := s.Run
	s.Run = func(ctx context.Context, dir string, env []string, argv ...string) (process.Result, error) {
		if filepath.Base(argv[0]) == "claude" {
			argv = []string{"/bin/sh", "-c", "exit 7"}
		}
		return run(ctx, dir, env, argv...)
	}
	sc := play(t, s)["blocked"]
	if sc.OK || len(sc.Different) != 1 || !strings.Contains(sc.Different[0], "exit code 7") ||
		!strings.Contains(demo.Text([]demo.Scene{sc}), "NOT AS CLAIMED: ") {
		t.Errorf("%+v", sc)
	}
}

// TestNoActorByChance: a link of that name alone does not make this program play somebody.
func TestNoActorByChance(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	part := func(string) (string, bool) { return "claude", true }
	if demo.IsStandIn([]string{"/usr/bin/claude"}, none) || demo.IsStandIn([]string{"/usr/bin/omniagent"}, part) ||
		demo.IsStandIn(nil, part) {
		t.Error("it plays where nobody asked for that")
	}
	if !demo.IsStandIn([]string{"/usr/bin/claude"}, part) {
		t.Error("it does not play")
	}
}
