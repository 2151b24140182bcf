package fork

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"omniagent/internal/process"
)

// git runs git in the workspace and returns its output.
func (f *Fork) git(ctx context.Context, args ...string) (string, error) {
	out, _, err := f.call(ctx, nil, nil, args...)
	return out, err
}

// call is git with input and additional variables.
func (f *Fork) call(ctx context.Context, input []byte, env []string, args ...string) (out string, code int, err error) {
	return f.callIn(ctx, f.Workspace, input, env, args...)
}

// longestAnswer is enough for the names of millions of files.
const longestAnswer = 1 << 30

// callIn is call in a directory. git starts no programs of the repository and fetches nothing. Variables that name a
// repository are removed, because a hook of another repository may have started us.
func (f *Fork) callIn(ctx context.Context, dir string, input []byte, env []string, args ...string) (
	out string, code int, err error,
) {
	elsewhere := []string{
		"GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
		"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
	}
	own := slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(elsewhere, name)
	})
	r, err := process.Run(ctx, process.Spec{
		Argv: append([]string{
			"git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "--no-optional-locks",
		}, args...),
		Dir: dir, Stdin: input, MaxOutput: longestAnswer,
		Env: append(process.Environment(own, process.EnvOptions{
			Extra: map[string]string{"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"},
		}), env...),
	})
	out = strings.TrimSpace(string(r.Stdout))
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(r.Stderr)))
	}
	if err == nil && r.OutputTruncated {
		err = fmt.Errorf("git %s: its answer is too long", args[0])
	}
	return out, r.ExitCode, err
}
