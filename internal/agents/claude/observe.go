package claude

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// Observe records the sizes of an existing session's transcripts before the start. What they contain then belongs to
// earlier runs.
func (d driver) Observe(l agent.Launch) agent.Observer {
	o := &observer{launch: l, home: configHome(l.Env), before: map[string]int64{}, began: time.Now().UTC()}
	switch {
	case o.home == "":
	case l.Session == "":
		if l.Spec.Newest {
			o.before = cli.Sizes(o.project())
		}
	case l.Session != l.Spec.Fresh:
		o.path = o.find()
		for _, path := range append(o.agents(), o.path) {
			o.before[path] = cli.Size(path)
		}
		o.spent = lastCost(o.path, o.before[o.path])
	case cli.Passed(l.Spec.Passthrough, "--fork-session"):
		// The new transcript begins with a copy of the old one, including its times.
		o.since = time.Now().UTC().Truncate(time.Millisecond)
	}
	return o
}

type observer struct {
	launch agent.Launch
	home   string           // where the CLI keeps its records
	path   string           // the transcript
	before map[string]int64 // lengths of files before the start
	since  time.Time        // for a fork: older records are copies
	spent  cost             // cost of the session before the start
	began  time.Time
}

// project returns the transcripts of this directory.
func (o *observer) project() []string {
	paths, _ := filepath.Glob(filepath.Join(o.home, "projects", slug(pathname.Real(o.launch.Dir)), "*.jsonl"))
	return paths
}

// newest finds the session that --continue resumed: its transcript is the only one here that has grown.
func (o *observer) newest() {
	path := cli.Grown(o.before, o.project())
	if path == "" {
		return
	}
	o.launch.Session = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	o.spent = lastCost(path, o.before[path])
}

// After reads the records that the run added.
func (o *observer) After(x agent.Exit) agent.Evidence {
	if o.home == "" || x.Failed != nil {
		return agent.Evidence{}
	}
	older := o.since // records of sub-agents before then are not of this run
	if o.launch.Session == "" && o.launch.Spec.Newest {
		o.newest()
		older = o.began.Truncate(time.Millisecond)
	}
	if o.launch.Session == "" {
		return agent.Evidence{}
	}
	o.path = o.find() // again: the run may have used the id in another directory
	t := summary{since: o.since, names: map[string]string{}}
	if o.path == "" || !t.read(o.path, o.before[o.path]) || t.records == 0 {
		return o.refusal(x)
	}
	e := agent.Evidence{Session: o.launch.Session, Model: t.model, Records: []string{o.path}, Calls: t.calls.Done()}
	if t.cost != nil && o.since.IsZero() {
		e.Usage = t.cost.since(o.spent)
	}
	for _, path := range o.agents() {
		sub := summary{since: older, names: t.names, side: true}
		if sub.read(path, o.before[path]) {
			e.Records = append(e.Records, path)
			t.denials = append(t.denials, sub.denials...)
			e.Calls = append(e.Calls, sub.calls.Done()...)
		}
	}
	if o.launch.Interactive {
		// A person's own refusals are not policy, and they saw the failures.
		return e
	}
	e.Answered, e.Fault = t.answered(), t.failure()
	e.DenialsKnown = true
	e.Denials = t.denials
	return e
}

// refusal returns the known reason why a run without records failed.
func (o *observer) refusal(x agent.Exit) agent.Evidence {
	for _, r := range refusals(o.launch) {
		if r.Explains(x) {
			return agent.Evidence{
				Fault: fault.New(fault.AgentRefused, "%s", r.Reason).FixBy(r.Fix, r.Command).Hint("%s", r.Fix),
			}
		}
	}
	return agent.Evidence{}
}

// configHome returns the directory in which the CLI keeps its records, or "".
func configHome(env []string) string {
	if home := cli.Home(env); home != "" {
		return cmp.Or(cli.First(env, "CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude"))
	}
	return cli.First(env, "CLAUDE_CONFIG_DIR")
}

// keeps returns the places of the CLI's own data.
func keeps(env []string) agent.Keeps {
	k := agent.Keeps{Dirs: []string{configHome(env), cli.InHome(env, "XDG_CACHE_HOME", ".cache", "claude-cli-nodejs")}}
	if home := cli.Home(env); home != "" {
		k.Files = []string{filepath.Join(home, ".claude.json")}
	}
	return k
}

// find looks for the transcript in the directory of this project, and then in those of all projects: a resumed session
// stays where it began, and a worktree has its own directory. Ids are unique.
func (o *observer) find() string {
	if !cli.IsUUID(o.launch.Session) {
		return ""
	}
	projects := filepath.Join(o.home, "projects")
	entries, _ := os.ReadDir(projects)
	dirs := []string{slug(pathname.Real(o.launch.Dir))}
	for _, e := range entries {
		dirs = append(dirs, e.Name())
	}
	for _, dir := range dirs {
		path := filepath.Join(projects, dir, o.launch.Session+".jsonl")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// slug returns the CLI's name for the directory of a project.
func slug(dir string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, dir)
}

// agents returns the transcripts of sub-agents, up to a limit. They are in a directory next to the session's.
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

// summary collects what a transcript says about a run.
type summary struct {
	since   time.Time
	side    bool // a sub-agent's transcript
	names   map[string]string
	records int

	denials     []event.Denial
	replied     bool // the model answered, or called a tool
	prompted    bool // a prompt was accepted
	interrupted bool
	failed      *apiFailure
	model       string
	cost        *cost
	calls       cli.Calls
}

func (t *summary) answered() agent.Tri {
	switch {
	case t.replied:
		return agent.Yes
	case t.prompted:
		return agent.No
	}
	return agent.Unknown
}

func (t *summary) failure() *fault.Fault {
	switch {
	case t.failed != nil:
		return t.failed.fault()
	case t.interrupted:
		return fault.New(fault.Interrupted, "the agent's turn was interrupted")
	}
	return nil
}
