package codex

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
)

// scene is a CODEX_HOME with a directory to work in.
type scene struct {
	t         *testing.T
	home, dir string
	n         int
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, home: t.TempDir(), dir: t.TempDir()}
}

func (s *scene) spec(mode setting.Mode, passthrough ...string) agent.Spec {
	return agent.Spec{
		Install: agent.Install{Path: "codex"}, Mode: mode, Shared: setting.Defaults(), Dir: s.dir,
		Passthrough: passthrough,
		Env:         []string{"CODEX_HOME=" + s.home}, Machine: agent.Machine{
			OS:  "linux",
			Has: func(string) bool { return true },
		},
	}
}

func (s *scene) launch(spec agent.Spec) agent.Launch {
	s.t.Helper()
	l, _, err := New().Command(spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

// id makes a UUID of version 7 for that moment.
func (s *scene) id(at time.Time) string {
	s.n++
	ms := fmt.Sprintf("%012x", at.UnixMilli())
	return fmt.Sprintf("%s-%s-7000-8000-%012d", ms[:8], ms[8:], s.n)
}

// rollout writes the transcript of a session that ended with a message.
func (s *scene) rollout(id, dir, source string, at time.Time) string {
	s.t.Helper()
	path := filepath.Join(s.home, "sessions", at.Format("2006/01/02"), "rollout-"+at.Format("2006-01-02T15-04-05")+"-"+
		id+".jsonl")
	text := fmt.Sprintf(`{"type":"session_meta","payload":{"id":%q,"cwd":%q,"source":%s,"base_instructions":{"text":%q}}}
{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"of %s"}}
`, id, dir, source, strings.Repeat("x", 100<<10), id)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func head(id string) []byte {
	return []byte("Reading prompt from stdin...\nOpenAI Codex v0.169.0\n--------\nworkdir: /ws\nsession id: " + id +
		"\n--------\nuser\nq\n")
}

const source = `"exec"`

func TestObserveOnly(t *testing.T) {
	zone := time.FixedZone("far", 14*60*60)
	for name, c := range map[string]struct {
		mode  setting.Mode
		pass  []string
		exit  agent.Exit
		write func(s *scene, now time.Time) (mine string)
	}{
		"one": {write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(id, s.dir, source, now)
			return id
		}},
		"another day": {write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(id, s.dir, source, now.In(zone))
			return id
		}},
		"none": {write: func(*scene, time.Time) string { return "" }},
		"two": {write: func(s *scene, now time.Time) string {
			s.rollout(s.id(now), s.dir, source, now)
			s.rollout(s.id(now), s.dir, source, now)
			return ""
		}},
		"another directory": {write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(id, s.dir, source, now)
			s.rollout(s.id(now), s.t.TempDir(), source, now)
			return id
		}},
		"an agent of the agent": {write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(id, s.dir, source, now)
			s.rollout(s.id(now), s.dir, `{"subagent":{"thread_spawn":{}}}`, now)
			return id
		}},
		"another terminal": {write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(id, s.dir, source, now)
			s.rollout(s.id(now), s.dir, `"cli"`, now)
			return id
		}},
		"a terminal": {mode: setting.Interactive, write: func(s *scene, now time.Time) string {
			id := s.id(now)
			s.rollout(s.id(now), s.dir, source, now)
			s.rollout(id, s.dir, `"cli"`, now)
			return id
		}},
		"begun before": {write: func(s *scene, now time.Time) string {
			s.rollout(s.id(now.Add(-time.Hour)), s.dir, source, now)
			return ""
		}},
		"not kept": {pass: []string{"--ephemeral"}, write: func(s *scene, now time.Time) string {
			s.rollout(s.id(now), s.dir, source, now)
			return ""
		}},
		"resumes the last": {pass: []string{"resume", "--last"}, write: func(s *scene, now time.Time) string {
			s.rollout(s.id(now), s.dir, source, now)
			return ""
		}},
		"wrote, but began no session": {
			exit: agent.Exit{Code: 1, Stderr: []byte("Not inside a trusted directory\n")},
			write: func(s *scene, now time.Time) string {
				s.rollout(s.id(now), s.dir, source, now)
				return ""
			},
		},
		"lines have no head": {
			pass: []string{"--json"},
			exit: agent.Exit{Stderr: []byte("Reading prompt from stdin...\n")}, write: func(s *scene,
				now time.Time,
			) string {
				id := s.id(now)
				s.rollout(id, s.dir, source, now)
				return id
			},
		},
		"not started": {
			exit: agent.Exit{Code: -1, Failed: os.ErrNotExist},
			write: func(s *scene, now time.Time) string {
				s.rollout(s.id(now), s.dir, source, now)
				return ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if c.mode == "" {
				c.mode = setting.OneShot
			}
			o := New().Observe(s.launch(s.spec(c.mode, c.pass...)))
			want := c.write(s, time.Now())
			e := o.After(c.exit)
			if e.Session != want || (e.Answered == agent.Yes) != (want != "") || len(e.Records) > 0 != (want != "") {
				t.Errorf("%q, answered %v, records %v; want %q", e.Session, e.Answered, e.Records, want)
			}
		})
	}
}

// Of several runs at the same moment in the same directory, each knows its own by what Codex wrote first.
func TestObserveHead(t *testing.T) {
	s := newScene(t)
	l := s.launch(s.spec(setting.OneShot))
	o := New().Observe(l)
	now := time.Now()
	first, second := s.id(now), s.id(now)
	s.rollout(first, s.dir, source, now)
	s.rollout(second, s.dir, source, now)
	for _, id := range []string{first, second} {
		if e := o.After(agent.Exit{Stderr: head(id)}); e.Session != id {
			t.Errorf("%q, want %q", e.Session, id)
		}
	}
	// A command that prints the same comes later.
	if e := o.After(agent.Exit{Stderr: append(head(first), head(second)...)}); e.Session != first {
		t.Errorf("%q, want %q", e.Session, first)
	}
	// Of the end of a long text the head is unknown.
	if e := o.After(agent.Exit{Stderr: append(head(first),
		make([]byte, stderrKept)...)[:stderrKept]}); e.Session != "" {
		t.Errorf("%q of the end of a text", e.Session)
	}
	if e := o.After(agent.Exit{Stderr: head(s.id(now))}); e.Session != "" {
		t.Errorf("%q, which nothing was written for", e.Session)
	}
}

// A session that a person named is found by its id, however old, and only what is new counts.
func TestObserveNamed(t *testing.T) {
	s := newScene(t)
	then := time.Now().Add(-100 * 24 * time.Hour)
	id := s.id(then)
	path := s.rollout(id, s.dir, source, then)
	for name, spec := range map[string]agent.Spec{
		"resume":      func() agent.Spec { x := s.spec(setting.OneShot); x.Resume = id; return x }(),
		"passthrough": s.spec(setting.OneShot, "resume", strings.ToUpper(id)),
	} {
		t.Run(name, func(t *testing.T) {
			l := s.launch(spec)
			if l.Session != id {
				t.Errorf("session %q, want %q", l.Session, id)
			}
			o := New().Observe(l)
			if e := o.After(agent.Exit{}); e.Session != id || e.Answered != agent.Unknown {
				t.Errorf("nothing is new, and answered is %v of %q", e.Answered, e.Session)
			}
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(f, `{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":null}}`)
			f.Close()
			if e := o.After(agent.Exit{}); e.Answered != agent.No {
				t.Errorf("answered is %v, from what was there before", e.Answered)
			}
		})
	}
}

// A person at the terminal sees errors, and says no; neither is the run's.
func TestObserveInteractive(t *testing.T) {
	s := newScene(t)
	o := New().Observe(s.launch(s.spec(setting.Interactive)))
	now := time.Now()
	path := s.rollout(s.id(now), s.dir, `"cli"`, now)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f,
		`{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"CommandExecution","id":"1","status":"declined"}}}`)
	fmt.Fprintln(f,
		`{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"x","codex_error_info":"other"}}}`)
	f.Close()
	if e := o.After(agent.Exit{}); len(e.Denials) > 0 || e.Fault != nil {
		t.Errorf("%+v", e)
	}
	if e := o.After(agent.Exit{Code: 1}); e.Fault == nil {
		t.Error("the error that ended it is lost")
	}
}

func TestObserveWithoutHome(t *testing.T) {
	s := newScene(t)
	spec := s.spec(setting.OneShot)
	spec.Env = nil
	if e := New().Observe(s.launch(spec)).After(agent.Exit{}); e.Session != "" || e.DenialsKnown {
		t.Errorf("%+v", e)
	}
}

// TestFewDaysAreSearched: a run, or the age of the session that it resumes, may span years of transcripts.
func TestFewDaysAreSearched(t *testing.T) {
	s, now := newScene(t), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, days := range []int{0, maxDays - 2, maxDays - 1, 100} {
		at := now.AddDate(0, 0, days)
		s.rollout(s.id(at), s.dir, source, at)
	}
	o := observer{sessions: filepath.Join(s.home, sessionsDir)}
	if n := len(o.files(now, now.AddDate(1, 0, 0))); n != 2 {
		t.Errorf("%d transcripts are found", n)
	}
}

// TestLongBeginning: a file whose first line does not end soon is not the transcript of this run.
func TestLongBeginning(t *testing.T) {
	for n, ours := range map[int]bool{0: true, maxMeta: false} {
		s := newScene(t)
		l := s.launch(s.spec(setting.OneShot))
		path := filepath.Join(s.home, "x.jsonl")
		line := fmt.Sprintf(`{"type":"session_meta","payload":{"cwd":%q,"source":%s,"x":%q}}`+"\n", s.dir, source,
			strings.Repeat("x", n))
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := (&observer{launch: l}); o.ours(path) != ours {
			t.Errorf("of %d bytes: %t", len(line), !ours)
		}
	}
}
