//go:build unix

package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/sys/redact"
)

// TestSecretsAreNotPrinted: not in what is returned, not in what is read of a background command
// meanwhile, and not in the files of long outputs, wherever a piece ends.
func TestSecretsAreNotPrinted(t *testing.T) {
	t.Parallel()
	const secret = "canary-of-a-shell-4711"
	private := t.TempDir()
	s := open(t, func(o *Options) { o.Secrets, o.Private = redact.Known(secret), private })
	line := `
		printf 'one canary-of-a-'; sleep 0.3; printf 'shell-4711 two'; sleep 0.3; printf ' canary-of'; printf '\n'
		echo "$(printf canary-)of-a-shell-4711" >&2
		for i in 1 2 3 4 5 6 7 8; do printf '%9000s\n' canary-of-a-shell-4711; done
		head -c 200000 /dev/zero | tr '\0' x; echo canary-of-a-shell-4711
		printf 'the end canary-o'`
	o, err := s.Run(t.Context(), Command{Line: line})
	check(t, err)
	files, err := filepath.Glob(filepath.Join(private, "*"))
	check(t, err)
	texts := map[string]string{"stdout": o.Stdout, "stderr": o.Stderr}
	for _, name := range files {
		data, err := os.ReadFile(name)
		check(t, err)
		texts[filepath.Base(name)] = string(data)
	}
	job, err := s.Start(t.Context(), Command{Line: line})
	check(t, err)
	await(t, "the command", func() bool {
		now, err := s.Output(job.ID, nil)
		check(t, err)
		texts["background"] += now.Outcome.Stdout + now.Outcome.Stderr
		return !now.Running
	})
	if len(texts) != 4 {
		t.Errorf("%d files", len(files))
	}
	if o.Masked != 11 {
		t.Errorf("%d were masked", o.Masked)
	}
	for name, text := range texts {
		if strings.Contains(text, secret) || !strings.Contains(text, redact.Mask) {
			t.Errorf("%s: %s", name, fmt.Sprintf("%.300q", text))
		}
	}
	if !strings.HasPrefix(o.Stdout, "one "+redact.Mask+" two canary-of\n") ||
		!strings.HasSuffix(o.Stdout, "the end canary-o") {
		t.Errorf("%.80q … %.80q", o.Stdout, o.Stdout[len(o.Stdout)-30:])
	}
}
