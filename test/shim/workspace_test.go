//go:build unix

package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProgramOfTheWorkspace: npx, npm run and direnv put directories of the workspace first in PATH. What lies there is
// started only where a person asks for it with --allow-workspace-agent, which is the control here: each of these runs
// then.
func TestProgramOfTheWorkspace(t *testing.T) {
	for name, lay := range map[string]func(w *world, marker string) (path string){
		"a program": func(w *world, marker string) string {
			w.program("node_modules/.bin/claude", "#!/bin/sh\n"+marker)
			return w.root + "/node_modules/.bin:/usr/bin:/bin"
		},
		"in front of an installed one": func(w *world, marker string) string {
			w.program("node_modules/.bin/claude", "#!/bin/sh\n"+marker)
			return w.root + "/node_modules/.bin:" + w.bin + ":/usr/bin:/bin"
		},
		"a link to the workspace": func(w *world, marker string) string {
			w.link(w.program("tools/x", "#!/bin/sh\n"+marker), "claude")
			return w.bin + ":/usr/bin:/bin"
		},
		"a link of the workspace": func(w *world, marker string) string {
			w.program("bin/claude", "")
			if err := os.Remove(w.root + "/bin/claude"); err != nil {
				w.t.Fatal(err)
			}
			outside := w.program("../outside", "#!/bin/sh\n"+marker)
			if err := os.Symlink(outside, w.root+"/bin/claude"); err != nil {
				w.t.Fatal(err)
			}
			return w.root + "/bin:/usr/bin:/bin"
		},
		"an interpreter": func(w *world, marker string) string {
			w.link(w.program("../outside", "#!/usr/bin/env node\n"), "claude")
			w.program("node_modules/.bin/node", "#!/bin/sh\n"+marker)
			return w.root + "/node_modules/.bin:" + w.bin + ":/usr/bin:/bin"
		},
		"an interpreter by its path": func(w *world, marker string) string {
			w.link(w.program("../outside", "#!"+w.program("node", "#!/bin/sh\n"+marker)+"\n"), "claude")
			return w.bin + ":/usr/bin:/bin"
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "claude")
			if strings.Contains(name, "installed") {
				w = newWorld(t)
			}
			ran := filepath.Join(w.home, "ran")
			path := lay(w, "echo x >"+ran+"\n")
			w.env = []string{"PATH=" + path}
			for _, args := range [][]string{
				{"-p", "q"},
				{"-p", "q", "--allow-workspace-agent=false"},
				{"-p", "q", "--output-schema", "{}"},
			} {
				r := w.run(nil, append([]string{"--agent", "claude"}, args...)...)
				if _, err := os.Stat(ran); err == nil {
					t.Fatalf("%q: it ran: %+v", args, r)
				}
				if r.code != 2 || !strings.Contains(r.stderr, "comes with the workspace") ||
					!strings.Contains(r.stderr, "hint: --allow-workspace-agent") {
					t.Errorf("%q: %+v", args, r)
				}
				if also := strings.Contains(r.stderr, "it would be "+w.bin+"/claude"); also != strings.Contains(name,
					"installed") {
					t.Errorf("what is installed elsewhere is not told, or what is not is: %+v", r)
				}
			}
			if len(w.calls()) > 0 {
				t.Error("another program was started in its place")
			}
			if r := w.run(nil, "--agent", "claude", "-p", "q", "--allow-workspace-agent"); r.code != 0 {
				t.Errorf("with a person's word: %+v", r)
			}
			if _, err := os.Stat(ran); err != nil {
				t.Error("with a person's word it does not run")
			}
		})
	}
}

// TestProgramsOfAPerson: a home directory that is a repository holds programs of the person.
func TestProgramsOfAPerson(t *testing.T) {
	w := newWorld(t)
	w.env = []string{"HOME=" + filepath.Dir(w.root)}
	w.root = filepath.Dir(w.root)
	if err := os.Mkdir(w.root+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	if r := w.run(nil, "--agent", "claude", "-p", "q"); r.code != 0 || len(w.calls()) != 1 {
		t.Errorf("%+v", r)
	}
}

// program is an executable file, below the workspace unless its name leads out.
func (w *world) program(name, text string) string {
	w.t.Helper()
	path := w.file(name, text)
	if err := os.Chmod(path, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return filepath.Clean(path)
}

// link puts a program into PATH.
func (w *world) link(to, name string) {
	w.t.Helper()
	if err := os.Symlink(to, filepath.Join(w.bin, name)); err != nil {
		w.t.Fatal(err)
	}
}
