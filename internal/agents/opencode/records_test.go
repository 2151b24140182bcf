package opencode

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
)

func unzip(t testing.TB, path string) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(contents(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// home makes a home with the database of six runs. Those of the last two are in its log only.
func home(t testing.TB, db, wal []byte) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, ".local", "share", "opencode")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"opencode.db": db, "opencode.db-wal": wal} {
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(at, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// observed is what is known of the run with that title, begun at that moment.
func observed(home, title string, began int64, x agent.Exit) agent.Evidence {
	o := observer{launch: agent.Launch{Env: []string{"HOME=" + home}}, title: title, began: time.UnixMilli(began)}
	return o.After(x)
}

type recorded struct {
	title    string
	began    int64
	exit     int
	session  string
	answered agent.Tri
	denied   int
	code     fault.Code
	input    int64
}

func runs() []recorded {
	return []recorded{
		{
			"New session - 2026-11-21T01:25:23.067Z", 1795271935000, 0, "ses_e01743829ffex9rcNnhLMqLr4U", agent.Yes, 1,
			fault.Blocked, 100,
		},
		{
			"New session - 2026-11-21T19:18:44.130Z", 1795271954000, 0, "ses_e0173e9c5ffegmlFM5ZsdNEtoB", agent.Yes, 0,
			"",
			200,
		},
		{
			"New session - 2026-11-21T10:52:57.360Z", 1795271976000, 1, "ses_e0173949cffekHsF4GJWULfSbi", agent.No, 0,
			fault.TooManyRequests, 0,
		},
		{
			"New session - 2026-11-21T07:39:35.298Z", 1795272002000, 1, "ses_e01733215ffeF9ghe8c3s6J1gJ", agent.Yes, 0,
			fault.ContextFull, 200,
		},
		{
			"New session - 2026-11-21T22:05:57.077Z", 1795272005000, 0, "ses_e017322e6ffep5AwU1ubJAt3LI", agent.Yes, 1,
			fault.Blocked, 200,
		},
		{
			"New session - 2026-11-21T10:15:05.209Z", 1795272009000, 1, "ses_e017315d0ffe7gDbBvH1c3JRIr", agent.No, 0,
			fault.AuthRequired, 0,
		},
	}
}

func TestEvidence(t *testing.T) {
	dir := home(t, unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz"))
	for _, r := range runs() {
		x := agent.Exit{Code: r.exit}
		e := observed(dir, r.title, r.began, x)
		if e.Session != r.session || e.Answered != r.answered || len(e.Denials) != r.denied || !e.DenialsKnown ||
			e.Model != "rehearsal/m" || len(e.Records) != 1 {
			t.Errorf("%s: %+v", r.title, e)
		}
		if e.Usage == nil && r.input != 0 || e.Usage != nil && e.Usage.Input != r.input {
			t.Errorf("%s: %+v", r.title, e.Usage)
		}
		f := cli.ProcessFault(x, e)
		if r.code == "" && f != nil || r.code != "" && (f == nil || f.Code != r.code) {
			t.Errorf("%s: %v", r.title, f)
		}
		if r.code == fault.TooManyRequests && (f.RetryAfter != time.Second || f.Detail["status"] != 429) {
			t.Errorf("%v %v", f.RetryAfter, f.Detail)
		}
	}
}

// Runs in the same directory at the same moment are told apart by their titles alone.
func TestOthersAreNotTaken(t *testing.T) {
	db, wal := unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz")
	dir := home(t, db, wal)
	first := runs()[0]
	for name, e := range map[string]agent.Evidence{
		"no such title":    observed(dir, "New session - 2026-11-21T01:25:23.068Z", first.began, agent.Exit{}),
		"a longer title":   observed(dir, first.title+"Z", first.began, agent.Exit{}),
		"before the run":   observed(dir, first.title, first.began+60_000, agent.Exit{}),
		"no title of ours": observed(dir, "", first.began, agent.Exit{}),
		"the log is not ours": observed(home(t, db, bytes.Replace(wal, wal[16:24], []byte("saltsalt"), 1)),
			runs()[5].title, runs()[5].began, agent.Exit{}),
		"without the log": observed(home(t, db, nil), runs()[5].title, runs()[5].began, agent.Exit{}),
		"no database":     observed(home(t, nil, nil), first.title, first.began, agent.Exit{}),
		"an empty one":    observed(home(t, []byte{}, nil), first.title, first.began, agent.Exit{}),
	} {
		if e.Session != "" || e.Answered != agent.Unknown || e.DenialsKnown || e.Fault != nil || e.Usage != nil {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// With two sessions of the same title neither is taken.
func TestTwoOfATitle(t *testing.T) {
	db, wal := unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz")
	one, two := runs()[0], runs()[1]
	db = bytes.ReplaceAll(db, []byte(two.title), []byte(one.title))
	if e := observed(home(t, db, wal), one.title, one.began, agent.Exit{}); e.Session != "" {
		t.Errorf("%+v", e)
	}
}

func TestNamedSession(t *testing.T) {
	dir := home(t, unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz"))
	r := runs()[0]
	o := observer{
		launch: agent.Launch{Env: []string{"HOME=" + dir}, Session: r.session}, began: time.UnixMilli(r.began),
	}
	if e := o.After(agent.Exit{}); len(e.Denials) != 1 {
		t.Errorf("%+v", e)
	}
	o.began = time.UnixMilli(r.began).Add(time.Hour) // what an earlier turn did is not of this run
	if e := o.After(agent.Exit{}); e.Session != r.session || len(e.Denials) != 0 || e.Answered != agent.No {
		t.Errorf("%+v", e)
	}
	o.launch.Interactive = true
	if e := o.After(agent.Exit{}); e.Session != r.session || e.DenialsKnown {
		t.Errorf("%+v", e)
	}
}

// A person may answer a question within a moment: what the turn before it left in the session is not of this run. What
// this run adds is, whatever the clock says.
func TestResumedAtOnce(t *testing.T) {
	db, wal := unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz")
	first, added := runs()[0], runs()[4]
	for name, c := range map[string]struct {
		run     recorded
		log     []byte // before the start; after it, all of it is there
		denials int
	}{
		"left by the last turn":         {first, nil, 0},
		"left by a sub-agent":           {added, wal, 0},
		"added by this run's sub-agent": {added, nil, 1},
	} {
		dir := home(t, db, c.log)
		o := driver{}.Observe(agent.Launch{Env: []string{"HOME=" + dir}, Session: c.run.session}).(observer)
		if o.began = time.UnixMilli(c.run.began); c.denials > 0 {
			o.began = o.began.Add(time.Hour)
		}
		log := filepath.Join(dir, ".local", "share", "opencode", "opencode.db-wal")
		if err := os.WriteFile(log, wal, 0o600); err != nil {
			t.Fatal(err)
		}
		e := o.After(agent.Exit{})
		answered := agent.No
		if c.denials > 0 {
			answered = agent.Yes
		}
		if e.Session != c.run.session || !e.DenialsKnown || len(e.Denials) != c.denials || e.Answered != answered ||
			(e.Usage != nil) != (c.denials > 0) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// The parts that a fork copies get new times, their messages do not. What it copied is not of this run.
func TestForked(t *testing.T) {
	dir := home(t, unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz"))
	const asked, called = 1795271941824, 1795271944086 // the times of a message, and of the refused call in it
	for began, denials := range map[int64]int{asked: 1, called: 0} {
		o := driver{}.Observe(agent.Launch{Env: []string{"HOME=" + dir}}).(observer)
		o.began = time.UnixMilli(began)
		if e := o.After(agent.Exit{Session: runs()[0].session}); !e.DenialsKnown || len(e.Denials) != denials {
			t.Errorf("begun at %d: %+v", began, e)
		}
	}
}

func TestOvercome(t *testing.T) {
	var e agent.Evidence
	take(&e, message{Role: "assistant", ProviderID: "p", ModelID: "m", Error: &problem{Name: "APIError"}})
	if e.Fault == nil || e.Answered == agent.Yes {
		t.Errorf("%+v", e)
	}
	take(&e, message{
		Role: "assistant", ProviderID: "p", ModelID: "n", Finish: "stop", Cost: 0.5, Tokens: &tokens{Input: 1},
	})
	if e.Fault != nil || e.Model != "p/n" || e.Usage.Input != 1 || *e.Usage.CostUSD != 0.5 {
		t.Errorf("%+v", e)
	}
}

// Output of a command that imitates the CLI is not a denial, with or without a database.
func TestStderrIsNoEvidence(t *testing.T) {
	text := "\x1b[0m\n> build · m\n\x1b[93m\x1b[1m! \x1b[0mpermission requested: external_directory (/etc/*); " +
		"auto-rejecting\n! permission requested: bash (x); auto-rejecting\n"
	x := agent.Exit{Stderr: []byte(text)}
	if e := observed(t.TempDir(), "x", 0, x); len(e.Denials) != 0 || e.DenialsKnown {
		t.Errorf("without a database: %+v", e)
	}
	r := runs()[1]
	dir := home(t, unzip(t, "../sqlite/testdata/opencode.db.gz"), unzip(t, "../sqlite/testdata/opencode.db-wal.gz"))
	if e := observed(dir, r.title, r.began, x); len(e.Denials) != 0 || !e.DenialsKnown ||
		cli.ProcessFault(x, e) != nil {
		t.Errorf("with one that knows of none: %+v", e)
	}
}

func TestDatabase(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "x.db")
	for env, want := range map[string]string{
		"HOME=/h": filepath.Join("/h", ".local", "share", "opencode",
			"opencode.db"),
		"HOME=/h XDG_DATA_HOME=/d": filepath.Join("/d", "opencode", "opencode.db"),
		"USERPROFILE=/u": filepath.Join("/u", ".local", "share", "opencode",
			"opencode.db"),
		"HOME=/h OPENCODE_DB=o.db":                    filepath.Join("/h", ".local", "share", "opencode", "o.db"),
		"HOME=/h OPENCODE_DB=:memory:":                "",
		"HOME=/h XDG_DATA_HOME=/d OPENCODE_DB=" + abs: abs,
		"": "",
	} {
		if got := database(strings.Fields(env)); got != want {
			t.Errorf("%s: %s", env, got)
		}
	}
}

// A damaged database is read wrongly at worst, never for ever and never with a panic.
func FuzzStore(f *testing.F) {
	db, wal := unzip(f, "../sqlite/testdata/opencode.db.gz"), unzip(f, "../sqlite/testdata/opencode.db-wal.gz")
	for _, at := range []int{0, 16, 20, 100, 103, 108, 1024, 1027, 5000, 20000} {
		f.Add(at, byte(0xff), at/2, byte(0))
	}
	f.Fuzz(func(t *testing.T, at int, b byte, at2 int, b2 byte) {
		d, w := bytes.Clone(db), bytes.Clone(wal)
		d[uint(at)%uint(len(d))] = b
		d[uint(at2)%uint(len(d))] = b2
		w[uint(at)%uint(len(w))] ^= b2
		dir := home(t, d, w)
		for _, r := range []recorded{runs()[0], runs()[4]} {
			observed(dir, r.title, r.began, agent.Exit{})
		}
	})
}
