package fork

import (
	"context"
	"fmt"
	"strings"

	"omniagent/internal/sys/process"
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

// away returns the starter of git.
func (f *Fork) away() process.Programs { return f.store.Programs.Also(f.Workspace, f.dir) }

// callIn is call in a directory. git starts no programs of the repository and fetches nothing, and learns of no other
// repository from a variable, because a hook of another one may have started us.
func (f *Fork) callIn(ctx context.Context, dir string, input []byte, env []string, args ...string) (
	out string, code int, err error,
) {
	r, err := f.away().Run(ctx, process.Spec{
		Argv: append([]string{
			"git", "-C", dir, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "--no-optional-locks",
		}, args...),
		Stdin: input, MaxOutput: longestAnswer,
		Env: append(process.Environment(nil, process.EnvOptions{
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
