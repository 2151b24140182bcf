//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"
)

var errNoSelf = errors.New("not tried: there is no command to try it with")

// try starts the command and waits for its end. It has no input, no output and no environment; the null
// device was opened by the caller, because a restricted thread may not; nor may it start a guard, as process.Run would.
func try(ctx context.Context, argv []string, null *os.File, attr *syscall.SysProcAttr) error {
	if len(argv) == 0 {
		return errNoSelf
	}
	if err := ctx.Err(); err != nil {
		return notTried(err)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	cmd.SysProcAttr = attr
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var start *fs.PathError
	switch {
	case err != nil && ctx.Err() != nil:
		return notTried(ctx.Err())
	case errors.As(err, &start):
		return start.Err // without the path of Self, which does not matter here
	}
	return err
}

func notTried(err error) error { return fmt.Errorf("not tried: %w", err) }
