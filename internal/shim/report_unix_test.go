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

	"omniagent/internal/agent"
)

// TestReport is whole, for its owner alone, and holds neither prompt nor secret.
func TestReport(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	path := filepath.Join(w.work, "r.json")
	for i, say := range []string{"hello", "die"} {
		w.script(say)
		before, _ := os.Stat(path)
		r := w.run(nil, "--agent", "alpha", "-p", "the prompt", "--report", "r.json", "--", "--api-key=sk-ant-abcdefghijklmnopqrstuvwxyz0123456789")
		data, err := os.ReadFile(path)
		if err != nil || r.code != i {
			t.Fatalf("%v, %+v", err, r)
		}
		var report Report
		if err := json.Unmarshal(data, &report); err != nil || report.ExitCode != i || report.Agent != "alpha" || report.Attempts != 1 || report.Mode != "one-shot" {
			t.Errorf("%s, %v", data, err)
		}
		if (report.AgentExit == nil) != (say == "die") || (report.AgentSignal != nil) != (say == "die") || (report.Error != nil) != (say == "die") {
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
			t.Errorf("left beside it: %v", entries)
		}
	}
}

func TestReportThatCannotBe(t *testing.T) {
	w := newWorld(t)
	w.drivers = []agent.Driver{w.agent("alpha", nil)}
	for _, path := range []string{"none/r.json", ".", "/dev/null"} {
		if r := w.run(nil, "--agent", "alpha", "-p", "q", "--report", path); r.code != 2 || len(w.prompts()) != 0 || !strings.Contains(r.stderr, "\nhint: ") {
			t.Errorf("%s: %+v", path, r)
		}
	}
}

// TestTemporaryFiles are there while the agent works, and gone when it was killed, ran out of time or failed to start. That none is left
// is looked at after every run.
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
				for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && len(w.prompts()) == 0; time.Sleep(time.Millisecond) {
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

func TestUUID(t *testing.T) {
	a, err := newUUID()
	b, _ := newUUID()
	if err != nil || a == b || len(a) != 36 || a[14] != '4' || !strings.ContainsRune("89ab", rune(a[19])) {
		t.Errorf("%s, %s, %v", a, b, err)
	}
}
