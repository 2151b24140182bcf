package rehearsal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/sys/process"
)

// over gives this program a prompt with one character too many, which it must refuse. It returns a text for the
// finding, or what is wrong. Both are empty if that is not tried.
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
	errs := &process.Tail{}
	x := s.wait(ctx, process.Plan{
		Path: s.o.Self, Argv: []string{"omniagent", "--agent", s.Driver.Name(), "--trace-translate=only"}, Dir: home,
		Stdin: bytes.NewReader(letters(limit+1, "the end")), Stderr: errs,
		Env: cli.Environ(s.env, []string{"HOME=" + home, "USERPROFILE=" + home}), Grace: s.o.Grace,
	})
	switch {
	case x.Failed != nil:
		return "", "this program cannot be started: " + x.Failed.Error()
	case x.EndedBy != "":
		return "", "this program did not answer"
	case x.Code != 2 || !strings.Contains(string(errs.Bytes()), "longer than"):
		return "", "one character more was not refused"
	}
	return "; one more is refused with exit code 2", ""
}

func size(n int64) string { return strconv.FormatInt(n, 10) + " bytes" }
