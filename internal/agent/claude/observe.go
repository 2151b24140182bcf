package claude

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/event"
	"omniagent/internal/fault"
)

// Observe notes how long the transcript is before the start, where the session exists already: what is in it happened
// earlier.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := &observer{launch: l, home: configHome(l.Env), before: map[string]int64{}}
	switch {
	case l.Session == "" || o.home == "":
	case l.Session != l.Spec.Fresh:
		o.path = o.find()
		for _, path := range append(o.agents(), o.path) {
			if info, err := os.Stat(path); err == nil {
				o.before[path] = info.Size()
			}
		}
		o.spent = lastCost(o.path, o.before[o.path])
	case cli.Passed(l.Spec.Passthrough, "--fork-session"):
		// The new transcript begins with a copy of the old one, which keeps its times.
		o.since = time.Now().UTC().Truncate(time.Millisecond)
	}
	return o
}

type observer struct {
	launch agent.Launch
	home   string           // where the CLI keeps its records
	path   string           // the transcript
	before map[string]int64 // lengths of files before the start
	since  time.Time        // of a fork: what is older is a copy
	spent  cost             // before the start
}

// After reads what the run added. Without a transcript nothing is known.
func (o *observer) After(x agent.Exit) agent.Evidence {
	if o.launch.Session == "" || o.home == "" || x.Failed != nil {
		return agent.Evidence{}
	}
	o.path = o.find() // anew: an id that was used elsewhere may have begun again here
	t := tale{since: o.since, names: map[string]string{}}
	if o.path == "" || !t.read(o.path, o.before[o.path]) || t.records == 0 {
		return o.refusal(x)
	}
	e := agent.Evidence{Session: o.launch.Session, Model: t.model, Records: []string{o.path}}
	if t.cost != nil && o.since.IsZero() {
		e.Usage = t.cost.since(o.spent)
	}
	if o.launch.Interactive {
		// A person was there: their refusals are not policy, and they saw the failures.
		return e
	}
	e.Answered, e.Fault = t.answered(), t.failure()
	e.DenialsTold = true
	for _, path := range o.agents() {
		sub := tale{since: o.since, names: t.names, side: true}
		if sub.read(path, o.before[path]) {
			e.Records = append(e.Records, path)
			t.denials = append(t.denials, sub.denials...)
		}
	}
	e.Denials = t.denials
	return e
}

// refusal: nothing was recorded, it failed, and it was known that it would.
func (o *observer) refusal(x agent.Exit) agent.Evidence {
	known := refusals(o.launch)
	if len(known) == 0 || !known[0].Explains(x) {
		return agent.Evidence{}
	}
	r := known[0]
	return agent.Evidence{Fault: fault.New(fault.AgentRefused, "%s", r.Reason).FixBy(r.Fix, r.Command).Hint("%s",
		r.Fix)}
}

// configHome is the directory in which the CLI keeps its records.
func configHome(env []string) string {
	if dir, _ := cli.Lookup(env, "CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home, _ := cli.Lookup(env, name); home != "" {
			return filepath.Join(home, ".claude")
		}
	}
	return ""
}

// find looks for the transcript where it should be, and then in all directories of projects: a session that goes on
// stays where it began, and a worktree has a directory of its own. The id belongs to one session only.
func (o *observer) find() string {
	if !isID(o.launch.Session) {
		return ""
	}
	projects := filepath.Join(o.home, "projects")
	dir := o.launch.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	name := o.launch.Session + ".jsonl"
	if path := filepath.Join(projects, slug(dir), name); regular(path) {
		return path
	}
	entries, err := os.ReadDir(projects)
	if err != nil {
		return ""
	}
	for _, e := range entries {
		if path := filepath.Join(projects, e.Name(), name); regular(path) {
			return path
		}
	}
	return ""
}

// slug is the CLI's name for a directory.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// agents are the transcripts of sub-agents, which are beneath that of the session. Only so many are looked at.
func (o *observer) agents() []string {
	if o.path == "" {
		return nil
	}
	const most = 500
	var paths []string
	root := filepath.Join(strings.TrimSuffix(o.path, ".jsonl"), "subagents")
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(paths) == most:
			return fs.SkipAll
		case e.Type().IsRegular() && strings.HasSuffix(path, ".jsonl"):
			paths = append(paths, path)
		}
		return nil
	})
	slices.Sort(paths)
	return paths
}

// tale is what a transcript tells.
type tale struct {
	since   time.Time
	side    bool // of a sub-agent
	names   map[string]string
	records int

	denials []event.Denial
	said    bool // the model spoke, or called a tool
	asked   bool // a prompt was taken up
	broken  bool // the turn was interrupted
	failed  *apiFailure
	model   string
	cost    *cost
}

func (t *tale) answered() agent.Tri {
	switch {
	case t.said:
		return agent.Yes
	case t.asked:
		return agent.No
	}
	return agent.Unknown
}

func (t *tale) failure() *fault.Fault {
	switch {
	case t.failed != nil:
		return t.failed.fault()
	case t.broken:
		return fault.New(fault.Interrupted, "the agent's turn was interrupted")
	}
	return nil
}
