// Package rehearsal compares the claims of an agent's table with what the installed program does on this machine.
//
// The real program runs with the launch and the observer of its driver, on a scripted model on loopback, in a private
// home and workspace. A finding is based on the files afterwards, the requests to the model server, the output, the
// agent's records, and the end of the run. Only the record is left; a program that hangs costs one time limit and is
// killed with all that it started; and a record of another version, file or machine is recognised.
//
// What a run did not show is unknown, and what cannot be tried here has a reason. It tries one-shot runs only. The
// user's settings have no effect, because the home is private. The package has no code for single agents: the claims
// come from the tables, and one hostile repository has the files that any agent might read.
package rehearsal

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/ident"
	"omniagent/internal/kit/setting"
	"omniagent/internal/launch/allow"
	"omniagent/internal/sys/process"
)

// Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	Differs Verdict = "differs"
	Untried Verdict = "cannot-be-tried" // on this machine; Observed has the reason
	Unknown Verdict = "unknown"         // the run did not show it; Observed says why
)

// PromptSize is compared in addition to the features of a matrix: the longest prompt arrives whole, and a longer one
// never reaches the agent.
const PromptSize = "prompt-size"

// Finding is a claim and what was observed.
type Finding struct {
	Feature  string  `json:"feature"`
	Value    string  `json:"value"`
	Claim    string  `json:"claim" doc:"yes, nearest or no, and in which sense: from the agent's table, as it holds on this machine"`
	How      string  `json:"how" doc:"what was run"`
	Observed string  `json:"observed"`
	Verdict  Verdict `json:"verdict" enum:"holds,differs,cannot-be-tried,unknown"`
	Required bool    `json:"required" doc:"a difference that lets more happen than is claimed, or that breaks a flag; false: less happens than is claimed"`
	Means    string  `json:"means" doc:"what a difference means, and what to avoid"`
}

// Failed reports whether the finding is required, and its verdict is Differs or Unknown.
func (f Finding) Failed() bool { return f.Required && (f.Verdict == Differs || f.Verdict == Unknown) }

// Subject is an agent to try.
type Subject struct {
	Driver  agent.Driver
	Install agent.Install
}

// Options configure a rehearsal.
type Options struct {
	Env []string // of the caller
	// private homes and workspaces are created below it; not the system's temporary directory, where some agents refuse
	// to work
	State string
	Temp  string // temporary files of the agents: a directory with a short path, removed with the call
	Self  string // this program, which must refuse prompts that are too long; if empty, that is not tried
	Tool  string // our version
	// each subject runs in a repository with the traps of all of these
	Agents []agent.Driver

	Clock time.Duration // of one run; 0: three minutes
	Grace time.Duration // from the request to end to the kill; 0: 2 s
	Jobs  int           // runs at a time; 0: as many as there are cores, at least two
	// Tell is called, never concurrently, after each run and, with done, after each agent.
	Tell func(Progress)
}

// Progress reports a finished run or agent.
type Progress struct {
	Agent      string
	Run        string // the run; empty: the agent is done
	Took       time.Duration
	Done, Runs int
	Record     *Record // of an agent that is done
}

// Run tries the subjects in parallel. The records keep their order. When the context ends, running trials are ended,
// and the rest is unknown.
func Run(ctx context.Context, subjects []Subject, o Options) []Record {
	o.Clock, o.Grace = cmp.Or(o.Clock, 3*time.Minute), cmp.Or(o.Grace, 2*time.Second)
	o.Jobs = cmp.Or(o.Jobs, max(2, runtime.NumCPU()))
	if o.Tell == nil {
		o.Tell = func(Progress) {}
	}
	var one sync.Mutex
	tell := o.Tell
	o.Tell = func(p Progress) {
		one.Lock()
		defer one.Unlock()
		tell(p)
	}
	places := newPlaces(o.Jobs)
	records := make([]Record, len(subjects))
	var all sync.WaitGroup
	for i, s := range subjects {
		all.Go(func() {
			r := newStage(s, o, places)
			defer r.strike()
			records[i] = r.record(ctx)
			o.Tell(Progress{Agent: s.Driver.Name(), Took: time.Since(r.began), Record: &records[i]})
		})
	}
	all.Wait()
	return records
}

// stage is the rehearsal of one agent.
type stage struct {
	Subject
	o       Options
	places  *places
	began   time.Time
	machine agent.Machine
	matrix  agent.Matrix
	env     []string
	key     string // of the model server; the same for all runs, because a run may use the home of another
	base    string // parent of all created files; empty until it is created
	failed  error  // no place could be made

	mu   sync.Mutex
	ran  map[string]*outcome
	done int
}

func newStage(s Subject, o Options, places *places) *stage {
	st := &stage{
		Subject: s, o: o, places: places, began: time.Now(), matrix: s.Driver.Matrix(s.Install.Version),
		env: privately(o.Env),
		key: "sk-" + ident.Hex(8), ran: map[string]*outcome{},
	}
	lookup := process.In(o.Env)
	st.machine = agent.Machine{
		Root: os.Geteuid() == 0, OS: runtime.GOOS, Has: func(p string) bool { return process.Find(p, lookup) != "" },
	}
	return st
}

// privately removes variables that lead an agent to the caller's own home, and our own settings.
func privately(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME":
			return true
		}
		// the mark is for an outer call, which finds our processes by it
		return strings.HasPrefix(name, "OMNIAGENT_") && name != "OMNIAGENT_CHILD_MARK"
	})
}

// record runs everything and judges it.
func (s *stage) record(ctx context.Context) Record {
	r := Record{
		Schema: schema, Agent: s.Driver.Name(), Version: s.Install.Version, Path: s.Install.Path,
		RealPath: s.Install.RealPath, Tool: s.o.Tool, Machine: here(),
		Date: s.began.UTC().Truncate(time.Second), Findings: []Finding{},
	}
	hashed := make(chan []allow.File, 1)
	go func() {
		files, _ := allow.Fingerprint(s.Install.RealPath) // without hashes, the program counts as another
		hashed <- files
	}()
	s.base = filepath.Join(s.o.State, "rehearsal", ident.Hex(8))
	s.failed = os.MkdirAll(s.base, 0o700)
	s.perform(ctx)
	r.Program = append([]allow.File{}, <-hashed...)
	for _, p := range probes() {
		r.Findings = append(r.Findings, s.judge(p))
	}
	r.TookMS = time.Since(s.began).Milliseconds()
	return r
}

// perform first runs the trial that the others need. If that fails, it skips the others, so that an agent that hangs
// costs one time limit.
func (s *stage) perform(ctx context.Context) {
	all := s.trials()
	s.run(ctx, all[0])
	if why := s.outcome(all[0].name).trouble(); why != "" {
		for _, t := range all[1:] {
			s.keep(t.name, &outcome{skipped: "the first run failed: " + why})
		}
		return
	}
	var rest sync.WaitGroup
	for _, t := range all[1:] {
		rest.Go(func() { s.run(ctx, t) })
	}
	rest.Wait()
}

func (s *stage) run(ctx context.Context, t trial) {
	if s.failed != nil {
		s.keep(t.name, &outcome{skipped: "no private place can be made: " + s.failed.Error()})
		return
	}
	weight := time.Hour // the first run of an agent has precedence
	if first := s.outcome(free); first != nil {
		weight = first.took
	}
	if !s.places.take(ctx, weight) {
		s.keep(t.name, &outcome{skipped: "the call ended before"})
		return
	}
	defer s.places.give()
	o := s.play(ctx, t)
	s.keep(t.name, o)
	s.mu.Lock()
	s.done++
	done := s.done
	s.mu.Unlock()
	s.o.Tell(Progress{Agent: s.Driver.Name(), Run: t.name, Took: o.took, Done: done, Runs: len(s.trials())})
}

func (s *stage) keep(name string, o *outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran[name] = o
}

func (s *stage) outcome(name string) *outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ran[name]
}

// strike removes all created files. It tries for a second, because a killed process may still remove files itself.
func (s *stage) strike() {
	if s.base == "" {
		return
	}
	for gap := time.Millisecond; os.RemoveAll(s.base) != nil && gap < time.Second; gap *= 2 {
		time.Sleep(gap)
	}
	_ = os.Remove(filepath.Dir(s.base)) // where it is empty
}

// cell returns the table's claim about a one-shot run.
func (s *stage) cell(feature, value string) agent.Cell {
	return s.matrix.Cell(feature, value, setting.OneShot)
}
