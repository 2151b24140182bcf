package run

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/testkit/hermetic"
)

// mostMemory is what a run may take, however much its agent prints.
const mostMemory = 64 << 20

// deluge is a way in which an agent prints too much. Where it has an end, that is many times as far as the clock.
type deluge struct {
	name, script   string
	args           []string
	unread         bool // nobody reads what we print
	status, reason string
}

// deluges print for a minute and more, or so fast that the limit of the output comes first.
func deluges() []deluge {
	const (
		deaf  = `trap '' INT TERM; cat >/dev/null; `
		line  = `echo "a line of an agent that prints without an end, and which means nothing"`
		clock = `end=$(($(date +%s) + 120)); while [ $(date +%s) -lt $end ]; do i=0; `
		many  = `while [ $i -lt 20000 ]; do i=$((i+1)); `
		done  = `; done; done; echo yes >finished`
	)
	slow := []string{"--timeout", "4s"}
	return []deluge{
		{
			name: "lines", script: deaf + clock + many + line + done, args: slow, status: "timed_out",
			reason: "max_duration",
		},
		{
			name: "one line", script: deaf + clock + many + `printf "endless endless endless endless endless "` + done,
			args: slow, status: "timed_out", reason: "max_duration",
		},
		{
			name: "bytes", script: deaf + clock + many + `printf x` + done, args: slow, status: "timed_out",
			reason: "max_duration",
		},
		{
			name: "unread", script: deaf + clock + many + line + done, args: append(slow, "--stream"), unread: true,
			status: "timed_out", reason: "max_duration",
		},
		{
			name: "300 MB", script: `cat >/dev/null; yes "a line" | head -c 300000000; echo yes >finished`,
			args: []string{"--timeout", "2m"}, status: "failed", reason: "output_limit",
		},
		{
			name: "errors", script: `cat >/dev/null; yes "an error" | head -c 300000000 >&2; sleep 100; echo yes >finished`,
			args: []string{"--timeout", "2m"}, status: "failed", reason: "output_limit",
		},
	}
}

// TestDeluge: an agent that prints without an end costs little memory, and a clock or the limit of the output ends it.
func TestDeluge(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	for _, d := range hermetic.InTurn(t, deluges(), 3) {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).agent("flood", d.script)
			cmd := p.command(append([]string{"run", "--agent", "flood", "--yolo", "-p", "x"},
				d.args...)...)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			peak := hermetic.Weighed(t, cmd)
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			id := p.appears()
			for d.unread && slices.ContainsFunc(p.left(), isFlood) {
				time.Sleep(20 * time.Millisecond) // the clock of the run ends it, or its own
			}
			if d.unread { // it does not wait for the reader when its time is over
				unread := time.AfterFunc(time.Minute, func() {
					t.Error("it waits for a reader after its time limit")
					_, _ = io.Copy(io.Discard, out)
				})
				if err := cmd.Wait(); unread.Stop() && cmd.ProcessState.ExitCode() != 10 {
					t.Error(err)
				}
			}
			if !d.unread {
				_, err = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			}
			if n := peak(); n > mostMemory {
				t.Errorf("it took %d MiB", n>>20)
			}
			shown := p.call("runs", "show", id)
			if err != nil || shown.Data.Status != d.status || shown.Data.Reason != d.reason ||
				p.read("finished") != "" {
				t.Errorf("%v %s\n%s", err, shown, stderr.String())
			}
			p.nothing()
		})
	}
}

// isFlood reports whether a process is one of the agent.
func isFlood(process string) bool { return strings.Contains(process, "/flood") }
