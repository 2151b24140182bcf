//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/agents/opencode"
)

// Opening a pipe without a writer would block.
func TestPipes(t *testing.T) {
	root := tree{"package.json": pkg("opencode-ai", "1.2.3"), "in/opencode*": ""}.grow(t)
	for _, name := range []string{"in/package.json", "pipe/opencode"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if in, err := opencode.New().Locate(environ(root + "/pipe:" + root + "/in")); err != nil ||
			in.Version != "1.2.3" {
			t.Errorf("%+v, %v", in, err)
		}
		if _, err := opencode.New().Locate(environ(root + "/pipe")); err == nil ||
			!strings.Contains(hint(err), "is not a file") {
			t.Errorf("%v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("held by a pipe")
	}
}

// Others may execute it, this user may not: a shell passes it over.
func TestClosedToThisUser(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("nothing is closed to root")
	}
	root := tree{"in/opencode": "", "shut/opencode*": ""}.grow(t)
	if err := os.Chmod(root+"/in/opencode", 0o611); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root+"/shut", 0); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(root+"/shut", 0o755)
	if in, err := opencode.New().Locate(environ(root + "/shut:" + root + "/in")); err == nil ||
		!strings.Contains(hint(err), "is not executable") {
		t.Errorf("%+v, %v", in, err)
	}
}
