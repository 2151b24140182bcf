package agents

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/llm/modelserver"
)

func copilotScenarios() []scenario {
	return slices.Concat(copilotPairs(), copilotCells(), copilotFailures(), copilotScreens(), copilotHostile())
}

// copilotBoxed skips what cannot hold where no sandbox can be made.
func copilotBoxed(b *bench) {
	b.t.Helper()
	needPrograms(b, "bwrap", "slirp4netns", "iptables", "ip6tables", "nsenter")
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		b.t.Skip("copilot's sandbox needs a tunnel:", err)
	}
	_ = tun.Close()
}

// copilotModel is a model of the test's own, for calls without a rehearsal: the home stays from one call to the next,
// nothing is trusted, and what the CLI asks the model can be read.
func copilotModel(b *bench, script string) *modelserver.Server {
	b.t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		b.t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = server.Close() })
	b.env = append(b.env, "COPILOT_PROVIDER_BASE_URL="+server.URL()+"/v1", "COPILOT_PROVIDER_API_KEY=key-of-the-test",
		"COPILOT_MODEL=of-a-variable",
		"COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "NO_PROXY=127.0.0.1,93.184.216.34")
	return server
}

// copilotAsked is the last request that offered tools.
func copilotAsked(b *bench, server *modelserver.Server) modelserver.Request {
	b.t.Helper()
	for _, r := range slices.Backward(server.Requests()) {
		if len(r.Tools) > 0 {
			return r
		}
	}
	b.t.Fatal("the model was not asked")
	return modelserver.Request{}
}

// copilotSaid reports whether a text stands in a message of the request.
func copilotSaid(r modelserver.Request, text string) bool {
	return slices.ContainsFunc(r.Messages, func(m modelserver.Message) bool {
		return slices.ContainsFunc(m.Blocks, func(x modelserver.Block) bool { return strings.Contains(x.Text, text) })
	})
}

func copilotOffers(r modelserver.Request, tool string) bool {
	return slices.ContainsFunc(r.Tools, func(t modelserver.Tool) bool { return t.Name == tool })
}

// copilotPage is a page outside of this machine, as far as the CLI can tell.
func copilotPage(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", abroad(t)+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "words of the page")
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server.URL + "/"
}

// copilotPairs: the flags of the CLI may be repeated and the last holds, so that the passthrough decides, also against
// what was typed. It looks for paths in a command and refuses those outside unless all paths are allowed; what it does
// not see is left to the sandbox.
func copilotPairs() []scenario {
	nothing, onlyWrites, inside := effect{code: 3}, effect{code: 3, write: true}, effect{
		code: 3, shell: true, write: true,
	}
	boxed, all := effect{shell: true, write: true}, effect{shell: true, write: true, outside: true}
	return []scenario{
		{
			"pairs of prompt",
			[]string{"pair prompt/*", "approval=prompt one-shot"},
			func(b *bench) {
				copilotBoxed(b)
				b.does(nothing)
				b.does(inside, "--", "--allow-all-tools")
				b.does(nothing, "--approval", "prompt", "--sandbox", "workspace-write")
				b.does(all, "--approval", "prompt", "--sandbox", "workspace-write", "--", "--no-sandbox", "--allow-all")
				b.does(nothing, "--sandbox", "off")
				b.does(boxed, "--sandbox", "off", "--", "--sandbox", "--allow-all-tools", "--allow-all-paths")
			},
		},
		{
			"pairs of auto-edit",
			[]string{"pair auto-edit/*", "approval=auto-edit one-shot"},
			func(b *bench) {
				copilotBoxed(b)
				b.does(onlyWrites, "--auto-edit")
				b.does(inside, "--auto-edit", "--", "--allow-all-tools")
				b.does(onlyWrites, "--auto-edit", "--sandbox", "workspace-write")
				b.does(nothing, "--auto-edit", "--sandbox", "workspace-write", "--", "--deny-tool=write")
				b.does(onlyWrites, "--auto-edit", "--sandbox", "off")
				b.does(all, "--auto-edit", "--sandbox", "off", "--", "--allow-tool=shell", "--allow-all-paths")
			},
		},
		{
			"pairs of yolo",
			[]string{"pair yolo/*", "approval=yolo one-shot"},
			func(b *bench) {
				copilotBoxed(b)
				b.does(all, "--yolo")
				b.does(boxed, "--yolo", "--", "--sandbox")
				b.does(onlyWrites, "--yolo", "--", "--deny-tool=shell")
				b.does(inside, "--yolo", "--sandbox", "workspace-write")
				b.does(boxed, "--yolo", "--sandbox", "workspace-write", "--", "--allow-all-paths")
				b.does(all, "--yolo", "--sandbox", "off")
				b.does(boxed, "--yolo", "--sandbox", "off", "--", "--sandbox")
			},
		},
		{"sandbox", []string{"sandbox=workspace-write one-shot", "sandbox=off one-shot"}, copilotSandbox},
	}
}

// copilotSandbox: what the CLI does not see in a command is held by the sandbox, and only there. The command is not
// told: it writes into something that is thrown away.
func copilotSandbox(b *bench) {
	copilotBoxed(b)
	hidden, out := filepath.Join(b.base, "hidden.txt"), filepath.Join(b.base, "own.txt")
	script := `[{"shell":"D=` + b.base + `; touch inside.txt; touch $D/hidden.txt"},{"write":{"path":"` + out +
		`","content":"x"}},{"say":"done"}]`
	for _, tt := range []struct {
		args             []string
		code             int
		inside, out, own bool // made by the command inside and outside; made outside by the tool that writes
	}{
		{[]string{"--yolo", "--sandbox", "workspace-write"}, 3, true, false, false},
		{[]string{"--yolo", "--sandbox", "off"}, 0, true, true, true},
		{[]string{"--yolo", "--sandbox", "workspace-write", "--", "--no-sandbox"}, 3, true, true, false},
	} {
		o := b.run(script, tt.args...)
		inside, outside, own := b.took("inside.txt"), b.took(hidden), b.took(out)
		if o.code != tt.code || inside != tt.inside || outside != tt.out || own != tt.own {
			b.t.Errorf("%q: exit code %d, inside %t, outside %t, by the tool %t: %s\n%s", tt.args, o.code, inside,
				outside, own, o.stdout, o.stderr)
		}
	}
	// Yolo turns off what a person's own settings turn on, also where nobody typed --sandbox off. A --sandbox behind --
	// is the last, and wins.
	copilotModel(b, script)
	b.put(filepath.Join(b.home, ".copilot", "settings.json"), `{"sandbox":{"enabled":true}}`)
	for _, tt := range []struct {
		args []string
		out  bool
	}{{[]string{"--yolo"}, true}, {[]string{"--yolo", "--", "--sandbox"}, false}} {
		o := b.start(nil, append([]string{"-p", "hello there"}, tt.args...)...)
		if inside, outside := b.took("inside.txt"), b.took(hidden); !inside || outside != tt.out {
			b.t.Errorf("%q with settings: inside %t, outside %t: %+v", tt.args, inside, outside, o)
		}
		b.took(out)
	}
}
