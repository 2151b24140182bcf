package demo

import (
	"context"
	"strings"

	"omniagent/internal/kit/fault"
)

// blocked plays the scene in which a coding CLI exits with 0 although its task was denied, and we exit with 3.
func (s *player) blocked(ctx context.Context) Scene {
	sc := Scene{
		Name: "blocked", Title: "A CLI says 0, and we say blocked",
		About: "claude is played by this program: it answers, exits and keeps a transcript as Claude Code does " +
			"when a tool of its model is denied.",
	}
	env := s.env(standInPart + "=" + standInName)
	alone, ok := s.run(ctx, &sc, 0, env, standInName, "-p", testsPrompt)
	if !ok {
		return sc
	}
	said := alone.Stdout
	if strings.TrimSpace(said) == "" {
		sc.differ("claude printed nothing")
	}
	_, report, ok := s.reported(ctx, &sc, shimBlocked, env, "omniagent", "-p", testsPrompt, "--agent", standInName)
	if !ok {
		return sc
	}
	ours := sc.Steps[1]
	switch {
	case ours.Stdout != said:
		sc.differ("what claude printed was changed on the way")
	case report.AgentExit == nil || *report.AgentExit != 0:
		sc.differ("claude did not end with 0 the second time")
	case report.Error == nil || report.Error.Code != string(fault.Blocked) || len(report.Denials) == 0:
		sc.differ("the denial was not found in the transcript")
	default:
		sc.saw("The same program, the same words. Its own exit code was 0; ours is 3, because its transcript has the "+
			"denial of %s.", report.Denials[0].Tool)
	}
	return sc
}

// shimBlocked is our exit code when policy denied a tool.
const shimBlocked = 3

// The script of the model that tries to leave the workspace.
const (
	leaveCommand = `rm ../letter.txt; echo x > ../planted`
	leaveScript  = `[{"shell": "` + leaveCommand + `"}, {"say": "I could not."}]` + "\n"
	letter       = "Dear diary\n"
)

// walls plays the scene in which a tool tries to leave the workspace, and the kernel refuses.
func (s *player) walls(ctx context.Context) Scene {
	sc := Scene{
		Name: "walls", Title: "A tool tries to leave the workspace, and the kernel refuses",
		About: "The model is a script that deletes one file outside of the workspace and makes another. Everything " +
			"is allowed (yolo). The tool, the walls and the refusal are real. Below the command is what its stream " +
			"tells of the tool.",
	}
	if !sc.put(map[string]string{s.beside("letter.txt"): letter, s.beside("leave.json"): leaveScript}) {
		return sc
	}
	sc.Script = new(leaveScript)
	step, report, ok := s.reported(ctx, &sc, 0, s.env(), "omniagent", "-p", "tidy up next door", "--agent", "native",
		"--approval", "yolo", "--sandbox", "workspace-write",
		"--output", "stream-json", "--rehearse=../leave.json")
	step.calls()
	sc.Files = []File{
		{Name: "../letter.txt", Before: new(letter), After: look(s.beside("letter.txt"))},
		{Name: "../planted", After: look(s.beside("planted"))},
	}
	if sc.Files[0].After == nil || *sc.Files[0].After != letter {
		sc.differ("../letter.txt is not what it was")
	}
	if sc.Files[1].After != nil {
		sc.differ("../planted is there")
	}
	if report.Sandbox != nil && report.Sandbox.Name == "none" {
		return s.open(ctx, sc)
	}
	if !ok {
		return sc
	}
	var shown string
	for _, c := range step.Calls {
		if c.Target == leaveCommand {
			shown = c.Output
		}
	}
	if strings.Contains(shown, "letter.txt': No such file") && len(sc.Different) == 0 {
		sc.Title = "A tool tries to leave the workspace, and does not get out"
		sc.saw("Walls: %s, network %s. Commands do not see what lies there: there was nothing to delete. Looked "+
			"at from "+
			"here, ../letter.txt is as it was, and ../planted is not there.",
			report.Sandbox.Name, report.Sandbox.Network)
		return sc
	}
	for _, name := range []string{"../letter.txt", "../planted"} {
		if !refused(shown, name) {
			sc.differ("the kernel's refusal of %s is not in what the command printed%s", name, because(shown))
		}
	}
	if len(sc.Different) == 0 {
		sc.saw("Walls: %s, network %s. ../letter.txt is as it was, and ../planted is not there.", report.Sandbox.Name,
			report.Sandbox.Network)
	}
	return sc
}

// refused reports whether a line of the output says that the system denied access to that file.
func refused(output, name string) bool {
	for line := range strings.Lines(output) {
		for _, word := range []string{"Read-only file system", "Permission denied", "Operation not permitted"} {
			if strings.Contains(line, name) && strings.Contains(line, word) {
				return true
			}
		}
	}
	return false
}

// open continues the scene on a machine without a sandbox. It then shows that the command did not run.
func (s *player) open(ctx context.Context, sc Scene) Scene {
	s.bare = true
	last := &sc.Steps[len(sc.Steps)-1]
	sc.Title = "No walls can be built on this machine, so nothing runs unasked"
	sc.Different = nil
	last.Expected = "the command is denied, since nobody can be asked"
	for _, f := range sc.Files {
		if (f.Before == nil) != (f.After == nil) {
			sc.differ("%s was changed", f.Name)
		}
	}
	if last.Exit != shimBlocked {
		sc.differ("the command ran without walls and without a question")
	}
	if _, ok := s.run(ctx, &sc, 0, s.env("OMNIAGENT_OUTPUT=plain"), "omniagent", "sandbox", "explain", "--as",
		"command", leaveCommand); ok && len(sc.Different) == 0 {
		sc.saw("This machine has no walls: omniagent doctor tells why. Even yolo asks then, and where nobody can be " +
			"asked the answer is no.")
	}
	return sc
}

// The project of the last scene, with its bug and its script.
const (
	sumBroken = "echo $(($1 - $2))\n"
	sumWhole  = "echo $(($1 + $2))\n"
	sumCheck  = `got=$(sh sum.sh 2 3)
if [ "$got" != 5 ]; then
  echo "sum.sh 2 3 says $got, not 5"
  exit 1
fi
echo "ok"
`
	fixScript = `[
  {"shell": "sh check.sh"},
  {"read": "sum.sh"},
  {"call": {"name": "Edit", "input": {"file_path": "sum.sh", "old_string": "$1 - $2", "new_string": "$1 + $2"}}},
  {"shell": "sh check.sh"},
  {"say": "sum.sh subtracted. Now it adds, and the check passes."}
]
`
)

// task plays the scene in which the native agent fixes a small program.
func (s *player) task(ctx context.Context) Scene {
	sc := Scene{
		Name: "task", Title: "A small task, from the failing check to the passing one",
		About: "The native agent in a project with a bug. The model is a script again; the tools, the edit and the " +
			"check are real.",
	}
	if !sc.put(map[string]string{
		s.file("task", "sum.sh"): sumBroken, s.file("task", "check.sh"): sumCheck, s.beside("fix.json"): fixScript,
	}) {
		return sc
	}
	sandbox := "workspace-write"
	if s.bare {
		sandbox = "off"
	}
	sc.Script = new(fixScript)
	step, report, ok := s.reported(ctx, &sc, 0, s.env(), "omniagent", "-p", "make check.sh pass", "--agent", "native",
		"--approval", "yolo", "--sandbox", sandbox,
		"--output", "stream-json", "--rehearse=../fix.json")
	step.calls()
	sc.Files = []File{
		{Name: "sum.sh", Before: new(sumBroken), After: look(s.file("task", "sum.sh"))}, {
			Name:   "check.sh",
			Before: new(sumCheck), After: look(s.file("task", "check.sh")),
		},
	}
	if after := sc.Files[0].After; after == nil || *after != sumWhole {
		sc.differ("sum.sh was not mended")
	}
	if after := sc.Files[1].After; after == nil || *after != sumCheck {
		sc.differ("check.sh was changed")
	}
	var checks []Call
	for _, c := range step.Calls {
		if c.Target == "sh check.sh" {
			checks = append(checks, c)
		}
	}
	switch {
	case !ok:
	case len(checks) != 2:
		sc.differ("the check ran %d times, not twice", len(checks))
	case !checks[0].Failed || !strings.Contains(checks[0].Output, "says -1"):
		sc.differ("the check did not fail before the edit%s", because(checks[0].Output))
	case checks[1].Failed || strings.TrimSpace(checks[1].Output) != "ok":
		sc.differ("the check did not pass after the edit%s", because(checks[1].Output))
	case len(sc.Different) == 0:
		walls := "without walls, which this machine does not have"
		if report.Sandbox != nil && report.Sandbox.Name != "none" {
			walls = "behind the walls " + report.Sandbox.Name
		}
		sc.saw("The check failed, sum.sh was changed, the check passed, all of it %s.", walls)
	}
	return sc
}
