//go:build unix

package agenttest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
)

// disturb edits, adds, deletes and commits files in the workspace until the test ends, as a person would, and holds a
// second conversation there with the engine. The laws look at files of other names.
func (p *place) disturb(t *testing.T) {
	t.Helper()
	git := func(args ...string) error {
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir, cmd.Env = p.work, []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), p.mark}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("git %v: %w\n%s", args, err, out)
		}
		return nil
	}
	if err := git("init", "-q"); err != nil {
		t.Fatal(err)
	}
	second, err := p.second(t)
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				stopped <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
			err := os.MkdirAll(p.file("theirs"), 0o700)
			for _, name := range []string{"edited", fmt.Sprint("added", i)} {
				if err == nil {
					err = os.WriteFile(filepath.Join(p.work, "theirs", name), fmt.Append(nil, i), 0o600)
				}
			}
			if err == nil && i > 3 {
				err = os.RemoveAll(p.file(fmt.Sprint("theirs/added", i-3)))
			}
			if err == nil && i%5 == 4 {
				err = second(i)
			}
			if err == nil && i%10 == 9 {
				if err = git("add", "-A", "theirs"); err == nil {
					err = git("commit", "-qm", fmt.Sprint(i))
				}
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		if err := <-stopped; err != nil {
			t.Errorf("the other work in the workspace fails: %v", err)
		}
	})
}

// second opens a second conversation in the workspace, of the same home. What it returns holds a turn that writes a
// file.
func (p *place) second(t *testing.T) (turn func(i int) error, err error) {
	t.Helper()
	other := *p
	other.model, other.temp = serve(t, modelserver.Pace{}), t.TempDir()
	c, err := converse(context.Background(), Engine(Direct()), wish{mode: setting.Yolo, in: &other}, quiet)
	if err != nil {
		return nil, err
	}
	p.other = c.ID()
	heard := c.Events(1)
	t.Cleanup(func() {
		if _, err := c.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return func(i int) error {
		name := fmt.Sprint("theirs/by-the-second-", i)
		ctx, cancel := soon()
		defer cancel()
		_, err := c.Send(ctx, []event.Block{{Text: task("make " + name)}})
		for err == nil {
			var e event.Event
			if e, err = heard.Next(ctx); err == nil && e.Kind == event.Ended {
				if !e.End.OK || !p.has(name) {
					return fmt.Errorf("the second conversation: %+v, made: %v", e.End, p.has(name))
				}
				return nil
			}
		}
		return err
	}, nil
}
