//go:build unix

package shim

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// TestReport is whole, for its owner alone, and holds neither prompt nor secret.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	path := filepath.Join(w.work, "r.json")
	for i, say := range []string{"hello", "die"} {
		w.script(say)
		before, _ := os.Stat(path)
		r := w.run(nil, "--agent", "alpha", "-p", "the prompt", "--report", "r.json", "--",
			"--api-key=sk-ant-abcdefghijklmnopqrstuvwxyz0123456789")
		data, err := os.ReadFile(path)
		if err != nil || r.code != i {
			t.Fatalf("%v, %+v", err, r)
		}
		var report Report
		if err := json.Unmarshal(data, &report); err != nil || report.ExitCode != i || report.Agent != "alpha" ||
			report.Attempts != 1 || report.Mode != "one-shot" {
			t.Errorf("%s, %v", data, err)
		}
		if (report.AgentExit == nil) != (say == "die") || (report.AgentSignal != nil) != (say == "die") ||
			(report.Error != nil) != (say == "die") {
			t.Errorf("%s", data)
		}
		if strings.Contains(string(data), "the prompt") || strings.Contains(string(data), "abcdefghij") {
			t.Errorf("%s", data)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
		if before != nil && os.SameFile(before, info) {
			t.Error("it was written in place, where a reader can see half of it")
		}
		if entries, _ := os.ReadDir(w.work); len(entries) != 2 { // with .git
			t.Errorf("other files in the directory: %v", entries)
		}
	}
}

func TestReportThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	w.write(filepath.Join(w.work, "file"), "mine")
	for name, to := range map[string]string{"link": "file", "dangling": "none", "todir": ".git"} {
		if err := os.Symlink(to, filepath.Join(w.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	// A FIFO stands for the devices: should the check ever be lost, a test of the superuser would replace /dev/null
	// itself.
	if err := syscall.Mkfifo(filepath.Join(w.work, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"none/r.json", ".", "..", ".git/", w.work + "/", "file/r.json", "link", "dangling",
		"todir", "pipe",
	} {
		if r := w.run(nil, "--agent", "alpha", "-p", "q", "--report", path); r.code != 2 || len(w.prompts()) != 0 ||
			!strings.Contains(r.stderr, "\nhint: ") {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// shell returns an agent that is a script of the shell.
func (w *world) shell(script string, with func(*fake)) fake {
	path := filepath.Join(w.t.TempDir(), "agent.sh")
	w.write(path, script)
	return w.agent("alpha", func(d *fake) {
		d.path, d.dir = "/bin/sh", path
		if with != nil {
			with(d)
		}
	})
}

// TestReportAndLinks: whatever the agent does to the path, nothing else than the report is written, and that where it
// was asked for.
func TestReportAndLinks(t *testing.T) {
	for name, tt := range map[string]struct {
		script  string
		written bool
	}{
		"nothing":                       {"", true},
		"a link to a file":              {`ln -sf "$VICTIM/file" sub/r.json`, true},
		"a link to nothing":             {`ln -sf "$VICTIM/none" sub/r.json`, true},
		"a hard link":                   {`ln -f "$VICTIM/file" sub/r.json`, true},
		"a FIFO":                        {"mkfifo sub/r.json", true},
		"a directory":                   {"mkdir -p sub/r.json/x", false},
		"another directory":             {`mv sub gone; ln -s "$VICTIM" sub`, false},
		"no directory":                  {"rm -r sub", false},
		"another directory, then again": {`mv sub gone; mv gone sub`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			victim := t.TempDir()
			w.write(filepath.Join(victim, "file"), "mine")
			w.env = []string{"VICTIM=" + victim}
			if err := os.Mkdir(filepath.Join(w.work, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			w.drivers = []agent.Driver{w.shell(tt.script, nil)}
			r := w.run(nil, "--agent", "alpha", "-p", "q", "--report", "sub/r.json")
			path := filepath.Join(w.work, "sub", "r.json")
			info, err := os.Lstat(path)
			whole := err == nil && info.Mode() == 0o600
			if whole {
				data, _ := os.ReadFile(path)
				whole = json.Valid(data)
			}
			if whole != tt.written || (r.code == 0) != tt.written ||
				strings.Contains(r.stderr, "the report cannot be written") == tt.written {
				t.Errorf("%v, %v, %+v", info, err, r)
			}
			if data, _ := os.ReadFile(filepath.Join(victim, "file")); string(data) != "mine" {
				t.Errorf("it was written through the link: %s", data)
			}
			if left, _ := os.ReadDir(victim); len(left) != 1 {
				t.Errorf("written elsewhere: %v", left)
			}
			for _, dir := range []string{"sub", "gone"} {
				if left, _ := filepath.Glob(filepath.Join(w.work, dir, ".omniagent-tmp-*")); len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
			}
		})
	}
}

func TestReportOverAFile(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	path := filepath.Join(w.work, "r.json")
	w.write(path, "from before")
	r := w.run(nil, "--agent", "alpha", "-p", "q", "--report", path)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 || r.code != 0 || w.reported() != "alpha" {
		t.Errorf("%v, %v, %+v", info, err, r)
	}
}

// observed is an agent whose records have secrets in every place.
type observed struct{ fake }

type records struct{}

const secret = "sk-ant-abcdefghijklmnopqrstuvwxyz0123456789"

func (observed) Observe(agent.Launch) agent.Observer { return records{} }

func (records) After(agent.Exit) agent.Evidence {
	return agent.Evidence{
		Answered: agent.Yes,
		Denials:  []event.Denial{{Tool: "fetch " + secret, Reason: "no " + secret, CallID: "call " + secret}},
		Fault: fault.New(fault.AgentFailed, "it said %s", secret).With("tail", secret).
			With("deep", map[string]any{"list": []any{secret, map[string]any{"inner": "say " + secret}}}).With("lines",
			[]string{secret}).With("status", 500),
	}
}

func TestNoSecretInTheReport(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{observed{w.agent("alpha", nil)}}
	r := w.run(nil, "--agent", "alpha", "-p", "q", "--report", "r.json")
	data, err := os.ReadFile(filepath.Join(w.work, "r.json"))
	if err != nil || r.code != 1 || strings.Contains(string(data), "abcdefghij") {
		t.Errorf("%s, %v, %+v", data, err, r)
	}
	var report Report
	if err := json.Unmarshal(data, &report); err != nil || report.Error == nil || len(report.Error.Detail) != 4 ||
		report.Error.Detail["status"] != 500.0 || len(report.Denials) != 1 {
		t.Errorf("%s, %v", data, err)
	}
}

// TestTemporaryFiles are there while the agent works, and gone when it was killed, ran out of time or failed to start.
// That none is left is looked at after every run.
func TestTemporaryFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		say  string
		args []string
		sign os.Signal
		code int
	}{
		"it ends":         {"hello", nil, nil, 0},
		"it is killed":    {"die", nil, nil, 1},
		"it takes long":   {"wait", []string{"--timeout=1s"}, nil, 1},
		"we are signaled": {"wait", nil, syscall.SIGTERM, Terminated},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.script(tt.say)
			w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.files = true })}
			done := make(chan struct{})
			var file, dir os.FileInfo
			go func() {
				defer close(done)
				for deadline := time.Now().Add(hermetic.Patience); time.Now().Before(deadline) &&
					len(w.prompts()) == 0; time.Sleep(time.Millisecond) {
					if list, _ := filepath.Glob(w.temp + "/*/in/file"); len(list) == 1 && file == nil {
						file, _ = os.Stat(list[0])
						dir, _ = os.Stat(filepath.Dir(filepath.Dir(list[0])))
					}
				}
				if tt.sign != nil {
					w.signals <- tt.sign
				}
			}()
			r := w.run(nil, append([]string{"--agent", "alpha", "-p", "q"}, tt.args...)...)
			<-done
			if r.code != tt.code {
				t.Errorf("%+v", r)
			}
			if file == nil || dir == nil || file.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", file, dir)
			}
		})
	}
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", func(d *fake) { d.files, d.path = true, w.temp+"/none" })}
	if r := w.run(nil, "--agent", "alpha", "-p", "q"); r.code != 1 {
		t.Errorf("%+v", r)
	}
}
