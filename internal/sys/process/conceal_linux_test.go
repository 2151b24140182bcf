package process

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// concealed conceals, and tells what it still has and what others see.
func concealed([]string) error {
	n := Conceal(func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return strings.HasSuffix(name, "_TOKEN")
	})
	again := Conceal(func(entry string) bool { return strings.HasPrefix(entry, "B_TOKEN=s") })
	seen, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return err
	}
	handed, err := exec.Command("env").Output()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"n": n, "again": again, "a": os.Getenv("A_TOKEN"), "b": os.Getenv("B_TOKEN"), "plain": os.Getenv("PLAIN"),
		"seen": string(seen), "handed": string(handed),
	})
}

// TestConceal: what is concealed is still ours, and is handed on to whom we hand it on, but nobody can look it up.
func TestConceal(t *testing.T) {
	exe, err := os.Executable()
	check(t, err)
	ours, theirs, err := os.Pipe()
	check(t, err)
	env := append(roleEnvironment("concealed"), "A_TOKEN=secret-1", "PLAIN=x", "B_TOKEN=secret-2", "B_TOKEN=secret-3",
		"EMPTY_TOKEN=", "LAST=y")
	// exec.Cmd would leave out a name that is there twice
	p, err := os.StartProcess(exe, []string{exe}, &os.ProcAttr{Env: env, Files: []*os.File{nil, theirs, os.Stderr}})
	check(t, err)
	check(t, theirs.Close())
	out, err := io.ReadAll(ours)
	check(t, err)
	_, err = p.Wait()
	check(t, err)
	var got struct {
		N, Again              int
		A, B, Plain           string
		Seen, Handed, ErrText string
	}
	check(t, json.Unmarshal(out, &got))
	if got.A != "secret-1" || got.B != "secret-2" && got.B != "secret-3" || got.Plain != "x" ||
		!strings.Contains(got.Handed, "A_TOKEN=secret-1\n") {
		t.Errorf("%+v", got)
	}
	if strings.Contains(got.Seen, "secret") || !strings.Contains(got.Seen, "PLAIN=x\x00") ||
		!strings.Contains(got.Seen, "LAST=y") {
		t.Errorf("others see %q", got.Seen)
	}
	if got.N != 4 || got.Again != 0 {
		t.Errorf("%d were concealed, then %d", got.N, got.Again)
	}
}
