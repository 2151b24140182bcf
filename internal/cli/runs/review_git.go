package runs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/flags"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

// plainSettings matches the settings of a repository that a diff of its working tree needs: how its files appear on
// this file system. None of them names a program.
const plainSettings = `^core\.(filemode|symlinks|ignorecase|precomposeunicode|autocrlf|eol|sparsecheckout(cone)?)$`

// workingTree calls git for a review.
//
// A repository can name programs that git starts: filters, hooks, diff drivers, monitors and transports. None of them
// must be started. In the repository itself, git only looks up the merge base, the paths of its parts and
// plainSettings. The diff is made in a substitute git directory, which shares the objects and the index but has no
// configuration. The user's own configuration still applies, such as the filters of git-lfs.
type workingTree struct {
	call *contract.Call
	env  map[string]string
	args []string // before the command
}

// workingDiff returns the diff between the merge base of HEAD and base, or HEAD if base is empty, and the working tree.
func workingDiff(ctx context.Context, c *contract.Call, base string) (string, error) {
	w := workingTree{call: c, env: map[string]string{
		"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0",
	}}
	against := cmp.Or(base, "HEAD")
	answer, err := w.git(ctx, "merge-base", "HEAD", against)
	if err == nil {
		against = strings.TrimSpace(answer)
		err = w.substitute(ctx)
	}
	if err == nil {
		err = w.addNew(ctx)
	}
	if err == nil {
		answer, err = w.git(ctx, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short",
			"--ignore-submodules=dirty", "--src-prefix=a/", "--dst-prefix=b/", against, "--")
	}
	return answer, err
}

// substitute makes the substitute git directory. From then on w calls git with it.
func (w *workingTree) substitute(ctx context.Context) error {
	answer, err := w.git(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "objects",
		"--git-path", "index", "--git-path", "info/exclude", "--show-object-format")
	if err != nil {
		return err
	}
	parts := strings.Split(strings.TrimSpace(answer), "\n")
	if len(parts) != 5 {
		return w.refuse("a path has more than one line")
	}
	settings, err := w.git(ctx, "config", "--null", "--get-regexp", plainSettings)
	if err != nil {
		settings = "" // git config fails if nothing matches
	}
	dir, err := w.call.Temp()
	if err != nil {
		return err
	}
	format := "[core]\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = " + parts[4] + "\n"
	ignored, _ := os.ReadFile(parts[3])
	err = cmp.Or(
		workspace.MkdirAll(filepath.Join(dir, "refs")),
		workspace.MkdirAll(filepath.Join(dir, "info")),
		workspace.WriteFile(filepath.Join(dir, "info", "exclude"), ignored, 0o600),
		workspace.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/none\n"), 0o600),
		workspace.WriteFile(filepath.Join(dir, "config"), []byte(format), 0o600),
	)
	shared, _ := filepath.Glob(filepath.Join(filepath.Dir(parts[2]), "sharedindex.*")) // a split index needs it
	for _, file := range shared {
		err = cmp.Or(err, os.Symlink(file, filepath.Join(dir, filepath.Base(file))))
	}
	maps.Copy(w.env, map[string]string{
		"GIT_DIR": dir, "GIT_WORK_TREE": parts[0], "GIT_OBJECT_DIRECTORY": parts[1], "GIT_INDEX_FILE": parts[2],
	})
	w.args = []string{"-c", "core.quotePath=false"}
	for entry := range strings.SplitSeq(settings, "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok {
			w.args = append(w.args, "-c", name+"="+value)
		}
	}
	return err
}

// addNew adds the untracked files that are not ignored to a copy of the index, with git add -N. It writes nothing into
// the repository: the empty object that this needs goes into the substitute directory.
func (w *workingTree) addNew(ctx context.Context) error {
	answer, err := w.git(ctx, "ls-files", "-z", "--others", "--exclude-standard", "--", ":/")
	if err != nil || answer == "" {
		return err
	}
	var names, repositories []string
	for name := range strings.SplitSeq(strings.TrimSuffix(answer, "\x00"), "\x00") {
		if strings.HasSuffix(name, "/") {
			repositories = append(repositories, name)
			continue
		}
		names = append(names, name)
	}
	if len(repositories) > 0 {
		w.call.Warn("NEW_FILES", "the diff does not have what is a repository of its own: %s",
			text.Cut(strings.Join(repositories, ", "), 200))
	}
	if len(names) == 0 {
		return nil
	}
	dir := w.env["GIT_DIR"]
	at, err := os.Stat(w.env["GIT_INDEX_FILE"]) // before reading: with too old a time, git only compares more files
	var index []byte
	if err == nil {
		index, err = os.ReadFile(w.env["GIT_INDEX_FILE"])
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	list, own, objects := filepath.Join(dir, "new"), filepath.Join(dir, "index"), filepath.Join(dir, "objects")
	err = cmp.Or(workspace.MkdirAll(objects), workspace.WriteFile(list, []byte(strings.Join(names, "\x00")), 0o600))
	if len(index) > 0 {
		// Git compares the content of files that are as new as the index, so the copy needs the time of the index.
		err = cmp.Or(err, workspace.WriteFile(own, index, 0o600), os.Chtimes(own, time.Time{}, at.ModTime()))
	}
	if err != nil {
		return err
	}
	w.env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = strconv.Quote(w.env["GIT_OBJECT_DIRECTORY"])
	w.env["GIT_OBJECT_DIRECTORY"], w.env["GIT_INDEX_FILE"] = objects, own
	_, err = w.git(ctx, "--literal-pathspecs", "add", "-N", "--pathspec-from-file="+list, "--pathspec-file-nul")
	return err
}

// git returns the output of a git command.
func (w *workingTree) git(ctx context.Context, command ...string) (string, error) {
	out, err := w.call.SpawnWith(ctx, w.call.Programs(), process.Spec{
		Argv: append(append([]string{"git", "-C", w.call.Dir()}, w.args...), command...),
		Env:  process.Environment(nil, process.EnvOptions{NoColor: true, Extra: w.env}),
	})
	switch {
	case err != nil:
		return "", err
	case out.OutputTruncated || len(out.Stdout) > flags.LongestMessage:
		return "", flags.MessageTooLong()
	case out.ExitCode != 0:
		return "", w.refuse(cli.FirstLine(string(out.Stderr)))
	}
	return string(out.Stdout), nil
}

func (w *workingTree) refuse(reason string) error {
	return fault.New(fault.NotFoundCode, "git cannot compare with %s here: %s",
		cmp.Or(w.call.String("base"), "HEAD"), cmp.Or(reason, "the two have no commit in common")).
		Hint("git diff … | omniagent review takes any diff")
}
