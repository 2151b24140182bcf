package budget

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"omniagent/internal/llm/modelserver"
)

// maxTurn is the memory of a headless turn of the native agent on an instant model, in bytes.
const maxTurn = 40 << 20

// TestTurn holds the peak of the memory, which the load of the machine changes little.
func TestTurn(t *testing.T) {
	script, err := modelserver.ParseScript([]byte(`[{"read":"a.txt"},{"shell":"echo hi"},{"say":"done"}]`))
	if err != nil {
		t.Fatal(err)
	}
	server, err := modelserver.Start(script, modelserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	work := t.TempDir()
	if err := os.WriteFile(work+"/a.txt", []byte("hi\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(built(t).File, "start", "--provider", "anthropic", "--model", "m", "--api-base", server.URL(),
		"--permission-mode", "auto", "-p", "go")
	cmd.Dir, cmd.Env = work, append(os.Environ(), "HOME="+t.TempDir(), "ANTHROPIC_API_KEY=k")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%d MiB", peak>>20)
	if peak > maxTurn {
		t.Errorf("a turn takes %d MiB, more than %d", peak>>20, maxTurn>>20)
	}
}
