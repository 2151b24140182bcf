package rehearsal

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/agent/cli"
	"omniagent/internal/process"
)

// over gives this program a prompt of one character too many. Nothing is started then. The first word is what to add to a finding, the second
// what is wrong.
func (s *stage) over() (refused, wrong string) {
	limit := s.limit()
	if !s.limited() || s.o.Self == "" || s.failed != nil {
		return "", ""
	}
	if limit > longest {
		return "; one of more than " + size(limit) + " was not tried", ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.o.Clock)
	defer cancel()
	home := filepath.Join(s.base, "over")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return "", err.Error()
	}
	r, err := process.Run(ctx, process.Spec{
		Argv: []string{s.o.Self, "--agent", s.Driver.Name(), "--trace-translate=only"}, Dir: home, Stdin: letters(limit+1, "the end"), Grace: s.o.Grace,
		Env: cli.Environ(s.env, []string{"HOME=" + home, "USERPROFILE=" + home}),
	})
	switch {
	case err != nil:
		return "", "this program did not answer: " + err.Error()
	case r.ExitCode != 2 || !strings.Contains(string(r.Stderr), "longer than"):
		return "", "one character more was not refused"
	}
	return "; one more is refused with exit code 2", ""
}

func size(n int64) string { return strconv.FormatInt(n, 10) + " bytes" }
