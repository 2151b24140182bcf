package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

// realAgents runs what is typed in the pages, and the tests of the real agents.
func (r *runner) realAgents() bool {
	switch {
	case os.Getenv("AGENTS") == "0":
		fmt.Fprintln(r.out, "skip  the real agents did not run, because AGENTS is 0")
		return true
	case !r.agents.ready:
		fmt.Fprintln(r.out, "FAIL  the real agents are not installed: see above; scripts/agents installs them")
		return false
	case r.agents.folder == "":
		fmt.Fprintln(r.out, "skip  the real agents did not run: there is no npm in PATH to install them with")
		return true
	}
	_ = os.Setenv("OMNIAGENT_TEST_AGENTS", r.agents.folder)
	run := func(args ...string) (record []byte, ok bool) {
		limit := "30m"
		if r.long {
			limit = "120m"
		}
		record, said, ok := r.report(r.goTest(append([]string{"-timeout", limit}, args...)...))
		_, _ = r.out.Write(said)
		return record, ok
	}
	// Of the pages only what the real agents answer: the rest was typed among the tests.
	ran, ok := run("./test/manual", "-run", "^TestRehearsals$")
	if !ok {
		fmt.Fprintln(r.out, "again TestRehearsals")
		ran, ok = run("./test/manual", "-run", "^TestRehearsals$")
	}
	r.ran["agents"] = ran
	ran, passed := run("./test/agents", "-parallel", "4")
	if passed {
		r.ran["agents"] = append(r.ran["agents"], ran...)
		return ok
	}
	// Eight programs with terminal interfaces share the processors here. What failed among them is tried again, alone,
	// twice at the most.
	r.ran["agents"] = append(r.ran["agents"], others(ran)...)
	failed := innermost(failures(ran))
	for _, name := range failed {
		fmt.Fprintf(r.out, "again %s\n", name)
		ran, passed := run("./test/agents", "-run", only(name))
		if !passed {
			fmt.Fprintf(r.out, "again %s, for the last time\n", name)
			ran, passed = run("./test/agents", "-run", only(name))
		}
		r.ran["agents"] = append(r.ran["agents"], ran...)
		ok = ok && passed
	}
	return ok && len(failed) > 0
}

// innermost returns the names of a record without those that have others beneath them.
func innermost(record []byte) (names []string) {
	for line := range bytes.Lines(record) {
		name := string(bytes.Fields(line)[1])
		if !bytes.Contains(record, []byte(" "+name+"/")) {
			names = append(names, name)
		}
	}
	return names
}

// only is the pattern that -run takes for one test or subtest.
func only(name string) string {
	return "^" + strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^") + "$"
}

// hosts lets other programs drive us, and shows for comparison what Claude Code does with the same scripts, if it is
// installed.
func (r *runner) hosts() bool {
	if !r.programs.ready {
		fmt.Fprintln(r.out, "FAIL  the hosts of others are not installed: see above; scripts/hosts installs them")
		return false
	}
	if r.programs.folder == "" {
		fmt.Fprintln(r.out, "skip  the hosts of others did not run: there is no npm in PATH to install them with")
	}
	_ = os.Setenv("OMNIAGENT_TEST_HOSTS", r.programs.folder)
	if r.agents.folder != "" {
		_ = os.Setenv("OMNIAGENT_TEST_AGENTS", r.agents.folder)
	}
	cmds := []*exec.Cmd{
		// One after the other, since what is on a screen at a moment is compared.
		r.goTest("-p", "1", "./test/hosts/...", "./test/terminal", "./test/chat"),
	}
	if r.programs.folder != "" { // what others publish in front of the real agents
		cmds = append(cmds, r.goTest("-parallel", "4", "-run", "^TestVerdictsOverAdapters$", "./test/agents"))
	}
	return r.tests("hosts", cmds...)
}
