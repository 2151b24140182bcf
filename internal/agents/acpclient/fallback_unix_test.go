//go:build unix

package acpclient

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// TestACPFallsBack: an agent that does not speak the protocol after all gets the message over its stream, and a Notice
// says why. One that somebody ends does not.
func TestACPFallsBack(t *testing.T) {
	t.Parallel()
	const reads = "cat >" + os.DevNull
	for name, c := range map[string]struct {
		script string
		why    string // empty: it does not
	}{
		"something else": {"echo Welcome!; " + reads, "the agent printed something else"},
		"exit":           {"read line; exit 2", "the agent ended before it answered"},
		"silence":        {"read line; sleep 100", "the agent did not answer within 1s"},
		"killed":         {"read line; kill -9 $$", ""},
		"spoken": {`read line; echo '{"id":1,"result":{"protocolVersion":1}}'; read line; ` +
			`echo '{"id":2,"result":{"sessionId":"s"}}'; read line; echo '{"id":3,"result":{"stopReason":"end_turn"}}'; ` +
			reads, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := cli.Program{
				ID: "stub", About: agent.About{Title: "Stub", Binary: "sh"}, OneShot: []string{
					"-c",
					reads + "; echo well",
				},
			}
			var told []event.Event
			sv := agent.Services{Tell: func(e event.Event) { told = append(told, e) }, Grace: time.Second}
			a := Agent{
				Driver: d, within: time.Second,
				Launch: func(s agent.Spec) (agent.Launch, error) {
					d := d
					d.OneShot, s.Mode = []string{"-c", c.script}, setting.OneShot
					l, _, err := d.Command(s)
					return l, err
				},
				Stream: func(s agent.Spec, sv agent.Services) (agent.Mind, error) { return cli.TurnMind(d, s, sv) },
			}
			m, err := a.Mind(agent.Spec{
				Install: agent.Install{Path: "/bin/sh"}, Dir: t.TempDir(), Temp: filepath.Join(t.TempDir(), "private"),
				Env: os.Environ(), Terms: agent.Terms{Transport: agent.ByACP},
			}, sv)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Turn(context.Background(), []event.Block{{Text: "go"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			ends, notice, last := 0, "", told[len(told)-1]
			for _, e := range told {
				if e.Kind == event.Ended {
					ends++
				}
				if e.Kind == event.Notice && strings.Contains(e.Text, "is not used, as the agent") {
					notice = e.Text
				}
			}
			if ends != 1 || last.Kind != event.Ended || (notice == "") != (c.why == "") ||
				!strings.Contains(notice, c.why) ||
				last.End.OK != (name != "killed") {
				t.Errorf("%q %+v", notice, told)
			}
		})
	}
}

// watched notes of which session its records are asked for.
type watched struct {
	cli.Program
	started *string // named when it started
	ended   *string // told when it ended
}

func (d watched) Observe(l agent.Launch) agent.Observer {
	*d.started = l.Session
	return d
}

func (d watched) After(x agent.Exit) agent.Evidence {
	*d.ended = x.Session
	return agent.Evidence{}
}

// TestACPRecords: the records that count are those of the session that goes on: of the copy, if the agent makes one.
func TestACPRecords(t *testing.T) {
	t.Parallel()
	const script = `read line; echo '{"id":1,"result":{"protocolVersion":1,"agentCapabilities":{"sessionCapabilities":` +
		`{"fork":{},"resume":{}}}}}'
read line
case $line in
*session/fork*) echo '{"id":2,"result":{"sessionId":"copy"}}' ;;
*) echo '{"id":2,"result":{}}' ;;
esac
read line; echo '{"id":3,"result":{"stopReason":"end_turn"}}'; cat >` + os.DevNull
	for fork, want := range map[bool][2]string{false: {"original", "original"}, true: {"", "copy"}} {
		var started, ended string
		d := watched{cli.Program{
			ID: "stub", About: agent.About{Title: "Stub", Binary: "sh"}, OneShot: []string{"-c", script},
		}, &started, &ended}
		a := Agent{Driver: d, Launch: func(s agent.Spec) (agent.Launch, error) {
			s.Mode = setting.OneShot
			l, _, err := d.Command(s)
			return l, err
		}}
		m, err := a.Mind(agent.Spec{
			Install: agent.Install{Path: "/bin/sh"}, Dir: t.TempDir(), Temp: filepath.Join(t.TempDir(), "private"),
			Env: os.Environ(), Resume: "original", Terms: agent.Terms{Transport: agent.ByACP, Fork: fork},
		}, agent.Services{Tell: func(event.Event) {}, Grace: time.Second})
		if err == nil {
			err = m.Turn(context.Background(), []event.Block{{Text: "go"}})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := [2]string{started, ended}; got != want {
			t.Errorf("fork %v: %q, want %q", fork, got, want)
		}
	}
}
