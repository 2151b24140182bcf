package codex

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/agent"
	"omniagent/internal/event"
	"omniagent/internal/lines"
)

const (
	sessionsDir = "sessions"
	maxDays     = 32      // directories of days that are looked through
	maxMeta     = 1 << 20 // bytes of a transcript's first line; it carries the model's instructions, 25 KiB of them
	stderrKept  = 64 << 10
)

// Observe looks for the transcript of a run, in CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl. The id cannot be
// chosen, so the file is known where a person named the session, where Codex printed the id at the head of what it
// wrote to stderr, or where one file alone can be meant.
func (driver) Observe(l agent.Launch) agent.Observer {
	p := readPassed(l.Spec.Passthrough)
	o := &observer{launch: l, passed: p, start: time.Now(), sizes: map[string]int64{}}
	if home := codexHome(l.Env); home != "" {
		o.sessions = filepath.Join(home, sessionsDir)
	}
	if l.Session != "" {
		if path := o.byID(l.Session, o.start); path != "" {
			o.sizes[path] = size(path)
		}
	}
	return o
}

type observer struct {
	launch   agent.Launch
	passed   passed
	sessions string
	start    time.Time
	sizes    map[string]int64 // of the transcript that was there before
}

// After reads the transcript.
func (o *observer) After(x agent.Exit) agent.Evidence {
	if o.sessions == "" || x.Failed != nil || o.passed.has("--ephemeral", "--remote") {
		return agent.Evidence{}
	}
	path := o.find(x)
	if path == "" {
		return agent.Evidence{Fault: refused(x, o.launch)}
	}
	e := readRollout(path, o.sizes[path])
	e.Session = idOf(path)
	e.Records = []string{path}
	if o.launch.Interactive {
		// by the person, as far as we know
		e.Denials = slices.DeleteFunc(e.Denials, func(d event.Denial) bool { return d.Reason == declined })
		if x.Code == 0 {
			e.Fault = nil // of one of many turns, and the person saw it
		}
	}
	return e
}

func (o *observer) find(x agent.Exit) string {
	end := time.Now()
	if o.launch.Session != "" {
		return o.byID(o.launch.Session, end)
	}
	id, whole := header(x.Stderr)
	switch {
	case id != "":
		if path := o.byID(id, end); path != "" {
			return path
		}
		return ""
	case whole && !o.launch.Interactive && !o.lines():
		return "" // it wrote to us, and no session began
	}
	if _, goesOn := o.passed.session(); goesOn {
		return "" // a session from before, or a copy of one
	}
	return o.only(end)
}

// lines says whether the output is JSON lines: then stderr has no head.
func (o *observer) lines() bool {
	for _, arg := range o.launch.Args {
		if arg == "--json" {
			return true
		}
	}
	return false
}

// header reads the id from the head of what exec writes to stderr. It has to be at the beginning: what commands print
// comes later, and could look the same. whole says that the head would be there if there were one.
func header(stderr []byte) (id string, whole bool) {
	whole = len(stderr) > 0 && len(stderr) < stderrKept
	const line = "--------\n"
	_, rest, ok := bytes.Cut(stderr, []byte("OpenAI Codex v"))
	if !ok || !whole {
		return "", whole
	}
	_, rest, ok = bytes.Cut(rest, []byte(line))
	head, _, closed := bytes.Cut(rest, []byte(line))
	if !ok || !closed {
		return "", whole
	}
	for l := range strings.SplitSeq(string(head), "\n") {
		if v, is := strings.CutPrefix(l, "session id: "); is && isID(strings.TrimSpace(v)) {
			return strings.TrimSpace(v), whole
		}
	}
	return "", whole
}

// only returns the transcript that began during the run, in its directory and in its mode, if there is exactly one.
func (o *observer) only(end time.Time) string {
	found := ""
	for _, path := range o.files(o.start, end) {
		if born := born(idOf(path)); born.Before(o.start.Truncate(time.Millisecond)) || born.After(end) ||
			!o.ours(path) {
			continue
		}
		if found != "" {
			return ""
		}
		found = path
	}
	return found
}

// meta is the first line of a transcript, as far as it tells whose it is.
type meta struct {
	Type    string `json:"type"`
	Payload struct {
		Dir    string          `json:"cwd"`
		Source json.RawMessage `json:"source"` // a word, or an object for an agent that another agent began
	} `json:"payload"`
}

func (o *observer) ours(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	first := lines.NewReader(f, maxMeta)
	var m meta
	if !first.Next() || first.Torn || json.Unmarshal(first.Text, &m) != nil || m.Type != "session_meta" {
		return false
	}
	want := `"exec"`
	if o.launch.Interactive {
		want = `"cli"`
	}
	return string(m.Payload.Source) == want && real(m.Payload.Dir) == real(workDir(o.launch, o.passed))
}

// files lists the transcripts of the days around the two moments: Codex takes the local day, of a zone that need not be
// ours.
func (o *observer) files(from, to time.Time) []string {
	var out []string
	last := to.UTC().AddDate(0, 0, 1)
	day := from.UTC().AddDate(0, 0, -1)
	for range maxDays {
		dir := filepath.Join(o.sessions, day.Format("2006"), day.Format("01"), day.Format("02"))
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			if path := filepath.Join(dir, entry.Name()); entry.Type().IsRegular() && idOf(path) != "" {
				out = append(out, path)
			}
		}
		if day.Format(time.DateOnly) == last.Format(time.DateOnly) {
			break
		}
		day = day.AddDate(0, 0, 1)
	}
	return out
}

// byID finds the transcript of a session. Its day is written in the id.
func (o *observer) byID(id string, now time.Time) string {
	id = strings.ToLower(id)
	if !isID(id) || o.sessions == "" {
		return ""
	}
	day := born(id)
	if day.After(now) {
		day = now
	}
	for _, path := range o.files(day, day) {
		if idOf(path) == id {
			return path
		}
	}
	return ""
}

// idOf is the id in a transcript's name.
func idOf(path string) string {
	name, ok := strings.CutSuffix(filepath.Base(path), ".jsonl")
	if !ok || !strings.HasPrefix(name, "rollout-") || len(name) < 36 {
		return ""
	}
	if id := strings.ToLower(name[len(name)-36:]); isID(id) {
		return id
	}
	return ""
}

// born is the moment in a UUID of version 7.
func born(id string) time.Time {
	if len(id) != 36 {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
