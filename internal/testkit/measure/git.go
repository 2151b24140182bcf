package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Git returns a call of git that starts nothing and locks nothing. It returns the work of the processors.
func Git(root string, input []byte, args ...string) func() (work time.Duration, err error) {
	return func() (time.Duration, error) {
		safe := []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}
		c := exec.Command("git", append(safe, args...)...)
		c.Dir = root
		c.Env = []string{
			"PATH=" + os.Getenv("PATH"), "GIT_OPTIONAL_LOCKS=0", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a",
		}
		c.Stdin = bytes.NewReader(input)
		err := c.Run()
		if c.ProcessState == nil {
			return 0, err
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime(), err
	}
}

// Repository makes a repository of n files, fifteen in a directory, all in one pack. The files are older than the
// index, so that git need not read them again.
func Repository(root string, n int) error {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	var commit bytes.Buffer
	commit.WriteString("commit refs/heads/all\ncommitter a <a> 0 +0000\ndata 0\n")
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("line of file %d\n", i), 20+i%100)
		fmt.Fprintf(&commit, "M 100644 inline dir%d/part%d/%d/file%d.go\ndata %d\n%s\n",
			i/1500, i/150%10, i/15%10, i, len(text), text)
	}
	for _, do := range []func() (time.Duration, error){
		Git(root, nil, "init", "-q"),
		Git(root, commit.Bytes(), "fast-import", "--quiet"),
		Git(root, nil, "checkout", "-q", "all"),
	} {
		if _, err := do(); err != nil {
			return fmt.Errorf("making a repository: %w", err)
		}
	}
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		return errors.Join(err, os.Chtimes(path, old, old))
	})
	if err != nil {
		return err
	}
	_, err = Git(root, nil, "update-index", "-q", "--refresh")()
	return err
}
