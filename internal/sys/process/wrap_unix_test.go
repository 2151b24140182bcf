//go:build unix

package process

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/kit/fault"
)

// TestPlanIsWrapped starts a program with a descriptor more, made as somebody else wants it, whose ending is corrected.
func TestPlanIsWrapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("more"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	var shaped, after int
	p := Plan{
		Argv: []string{"sh", "-c", "cat <&3; exit 139"}, Path: "/bin/sh", Stdout: &out, Files: []*os.File{file},
		Shape: func(attr *syscall.SysProcAttr) {
			if shaped++; !attr.Setsid {
				t.Error("it was asked too early")
			}
		},
		After: func(e *Ending) {
			after++
			if e.ExitCode != 139 || out.String() != "more" {
				t.Errorf("%+v %q", e, out.String())
			}
			e.ExitCode, e.Signal = -1, "SIGSEGV"
		},
	}
	c, err := Start(p)
	if err != nil {
		t.Fatal(err)
	}
	if e := c.Wait(); e.ExitCode != -1 || e.Signal != "SIGSEGV" || shaped != 1 || after != 1 {
		t.Errorf("%+v, shaped %d, after %d", e, shaped, after)
	}
	if _, err := file.Stat(); err != nil {
		t.Errorf("it is the caller's: %v", err)
	}

	// What could not be started is told as well, and under the name of what was wrapped.
	told := 0
	p = Plan{Argv: []string{"wrapper"}, Path: "/no/such", Name: "inner", After: func(e *Ending) {
		if told++; e != nil {
			t.Errorf("%+v", e)
		}
	}}
	if _, err := Start(p); !errors.Is(err, fault.NotInstalled) || !strings.Contains(err.Error(), "inner") {
		t.Errorf("%v", err)
	}
	p.Argv = nil
	if _, err := Start(p); err == nil || told != 2 {
		t.Errorf("%v, told %d", err, told)
	}
}
