package codex

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/kit/pathname"
)

const (
	sessionsDir = "sessions"
	maxDays     = 32      // the number of day directories to search
	maxMeta     = 1 << 20 // bytes of a transcript's first line; it has the model's instructions of 25 KiB
	stderrKept  = 64 << 10
)

// Observe looks for the transcript of a run, CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl. We cannot choose the
// id, so the file is known only if a person named the session, if Codex printed the id at the head of stderr, or if
// exactly one file fits.
func (driver) Observe(l agent.Launch) agent.Observer {
	p := readPassed(l.Spec.Passthrough)
	o := &observer{launch: l, passed: p, start: time.Now(), sizes: map[string]int64{}}
	if home := codexHome(l.Env); home != "" {
		o.sessions = filepath.Join(home, sessionsDir)
	}
	switch {
	case l.Session != "":
		if path := o.byID(l.Session, o.start); path != "" {
			o.sizes[path] = cli.Size(path)
		}
	case l.Spec.Resume != "" || l.Spec.Newest: // by its name, or the newest
		o.sizes = cli.Sizes(o.files(o.start.AddDate(0, 0, 2-maxDays), o.start))
	}
	return o
}

type observer struct {
	launch   agent.Launch
	passed   passed
	sessions string
	start    time.Time
	sizes    map[string]int64 // of transcripts, before the start
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
	id := idOf(path)
	isNew := !createdAt(id).Before(o.start.Truncate(time.Millisecond))
	if _, known := o.sizes[path]; !known && !isNew {
		return agent.Evidence{Session: id} // its size before the run is not known
	}
	e := readRollout(path, o.sizes[path])
	e.Session, e.Records = id, []string{path}
	named := o.launch.Spec.Resume
	if named != "" && o.launch.Session == "" && isNew {
		e.Fault = fault.New(fault.NotFoundCode, "codex knows no session %q, and began a new one", named).
			Hint("omniagent session list --all --agent codex lists the sessions")
	}
	if o.launch.Interactive {
		// As far as we know, the person declined these.
		e.Denials = slices.DeleteFunc(e.Denials, func(d event.Denial) bool { return d.Reason == declined })
		if x.Code == 0 {
			e.Fault = nil // it belongs to one of many turns, and the person saw it
		}
	}
	return e
}

func (o *observer) find(x agent.Exit) string {
	end := time.Now()
	if known := cmp.Or(o.launch.Session, x.Session); known != "" {
		return o.byID(known, end)
	}
	id, whole := header(x.Stderr)
	switch {
	case id != "":
		return o.byID(id, end)
	case whole && !o.launch.Interactive && !o.lines():
		return "" // we read its stderr, and no session began
	}
	if _, resumes := o.passed.session(); resumes {
		return "" // an earlier session, or a copy of one
	}
	return o.only(end)
}

// lines reports whether the output is JSON lines. Then stderr has no head.
func (o *observer) lines() bool { return slices.Contains(o.launch.Args, "--json") }

// header returns the id from the head of exec's stderr. It uses the first head, because the output of commands, which
// comes later, could look the same. whole reports whether stderr is complete, so that it would have the head if Codex
// had printed one.
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
		if v, is := strings.CutPrefix(l, "session id: "); is && cli.IsUUID(strings.TrimSpace(v)) {
			return strings.TrimSpace(v), whole
		}
	}
	return "", whole
}

// only returns the transcript that began during the run, in its directory and in its mode, if there is exactly one.
func (o *observer) only(end time.Time) string {
	found := ""
	for _, path := range o.files(o.start, end) {
		if born := createdAt(idOf(path)); born.Before(o.start.Truncate(time.Millisecond)) || born.After(end) ||
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

// meta is the first line of a transcript.
type meta struct {
	Type    string `json:"type"`
	Payload struct {
		Dir    string          `json:"cwd"`
		Source json.RawMessage `json:"source"` // a word, or an object for an agent that another agent started
	} `json:"payload"`
}

func (o *observer) ours(path string) bool {
	var m meta
	cli.EachLine(path, 0, maxMeta, func(first lines.Line) bool {
		if first.Torn || json.Unmarshal(first.Text, &m) != nil {
			m = meta{}
		}
		return false
	})
	want := `"exec"`
	if o.launch.Interactive {
		want = `"cli"`
	}
	return m.Type == "session_meta" && string(m.Payload.Source) == want &&
		pathname.Real(m.Payload.Dir) == pathname.Real(workDir(o.launch, o.passed))
}

// files lists the transcripts between two times, plus a day on each side: Codex uses local days, in a time zone that
// may not be ours.
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

// byID finds the transcript of a session. The id contains the day.
func (o *observer) byID(id string, now time.Time) string {
	id = strings.ToLower(id)
	if !cli.IsUUID(id) || o.sessions == "" {
		return ""
	}
	day := createdAt(id)
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

// idOf returns the id in a transcript's name, or "".
func idOf(path string) string {
	name, ok := strings.CutSuffix(filepath.Base(path), ".jsonl")
	if !ok || !strings.HasPrefix(name, "rollout-") || len(name) < 36 {
		return ""
	}
	if id := strings.ToLower(name[len(name)-36:]); cli.IsUUID(id) {
		return id
	}
	return ""
}

// createdAt returns the time in a UUID of version 7.
func createdAt(id string) time.Time {
	if len(id) != 36 {
		return time.Time{}
	}
	ms, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
