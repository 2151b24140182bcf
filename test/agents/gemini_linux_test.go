package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/llm/modelserver"
)

func geminiScenarios() []scenario {
	return slices.Concat([]scenario{
		{"pairs prompt", []string{
			"pair prompt/-", "pair prompt/workspace-write", "pair prompt/off",
			"approval=prompt one-shot",
		}, geminiPairsPrompt},
		{"pairs auto-edit", []string{
			"pair auto-edit/-", "pair auto-edit/workspace-write", "pair auto-edit/off",
			"approval=auto-edit one-shot",
		}, geminiPairsAutoEdit},
		{
			"pairs yolo",
			[]string{"pair yolo/-", "pair yolo/workspace-write", "pair yolo/off", "approval=yolo one-shot"},
			geminiPairsYolo,
		},
		{
			"passthrough says another approval",
			[]string{
				"pair prompt/-, then passthrough", "pair auto-edit/-, then passthrough",
				"pair yolo/-, then passthrough",
			},
			geminiOtherApproval,
		},
		{"passthrough switches the sandbox off", []string{
			"pair prompt/workspace-write, then passthrough", "pair auto-edit/workspace-write, then passthrough",
			"pair yolo/workspace-write, then passthrough",
		}, geminiSandboxPassedOff},
		{"passthrough switches the sandbox on", []string{
			"pair prompt/off, then passthrough", "pair auto-edit/off, then passthrough",
			"pair yolo/off, then passthrough",
		}, geminiSandboxPassedOn},
	}, geminiCells(), geminiScreens(), geminiHostile())
}

// What an approval comes to in a one-shot run: tools that would ask are not offered, so that nothing is denied.
func geminiPrompt() effect   { return effect{} }
func geminiAutoEdit() effect { return effect{write: true} }
func geminiYolo() effect     { return effect{shell: true, outside: true, write: true} }

// withoutContainers takes the container runtimes out of PATH.
func withoutContainers(b *bench) {
	b.t.Helper()
	runtimes := []string{"docker", "podman"}
	dirs := filepath.SplitList(os.Getenv("PATH"))
	if !slices.ContainsFunc(dirs, func(dir string) bool {
		return slices.ContainsFunc(runtimes, func(r string) bool {
			_, err := os.Stat(filepath.Join(dir, r))
			return err == nil
		})
	}) {
		return
	}
	links := filepath.Join(b.base, "programs")
	if err := os.Mkdir(links, 0o755); err != nil {
		b.t.Fatal(err)
	}
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !slices.Contains(runtimes, e.Name()) {
				// the first of a name counts
				_ = os.Symlink(filepath.Join(dir, e.Name()), filepath.Join(links, e.Name()))
			}
		}
	}
	b.env = append(b.env, "PATH="+bin+":"+filepath.Dir(program)+":"+links)
}

// geminiPairs tries one approval with every sandbox. Without a container runtime nothing is sent for workspace-write,
// and that is told.
func geminiPairs(b *bench, approval string, want effect) {
	withoutContainers(b)
	b.does(want, "--approval", approval)
	o := b.does(want, "--approval", approval, "--sandbox", "workspace-write")
	if !strings.Contains(o.stderr, "--sandbox workspace-write is ignored: it needs docker or podman or sandbox-exec") ||
		slices.Contains(o.report.Argv, "--sandbox") {
		b.t.Errorf("the sandbox that is not there: %s\n%q", o.stderr, o.report.Argv)
	}
	if o := b.start(nil, "-p", "x", "--rehearse", "--approval", approval, "--sandbox", "workspace-write",
		"--strict"); o.code != 2 {
		b.t.Errorf("--strict: %+v", o)
	}
	o = b.does(want, "--approval", approval, "--sandbox", "off")
	if !slices.Contains(o.report.Argv, "--sandbox=false") {
		b.t.Errorf("%q", o.report.Argv)
	}
}

func geminiPairsPrompt(b *bench)   { geminiPairs(b, "prompt", geminiPrompt()) }
func geminiPairsAutoEdit(b *bench) { geminiPairs(b, "auto-edit", geminiAutoEdit()) }
func geminiPairsYolo(b *bench)     { geminiPairs(b, "yolo", geminiYolo()) }

// geminiOtherApproval: what nobody typed gives way to the passthrough. What was typed does not: the CLI refuses to hear
// it twice.
func geminiOtherApproval(b *bench) {
	b.does(geminiYolo(), "--", "--approval-mode=yolo")
	b.does(geminiPrompt(), "--sandbox", "off", "--", "--approval-mode", "default")
	for approval, other := range map[string]string{
		"prompt": "--yolo", "auto-edit": "--approval-mode=yolo",
		"yolo": "--approval-mode=default",
	} {
		o := b.does(effect{code: 1}, "--approval", approval, "--", other)
		if o.report.code() != "AGENT_FAILED" || o.stdout != "" {
			b.t.Errorf("%s, then %s: %+v", approval, other, o)
		}
	}
}

// geminiSandboxPassedOff: there is nothing to switch off, and the approval stays as it was typed.
func geminiSandboxPassedOff(b *bench) {
	withoutContainers(b)
	for approval, want := range map[string]effect{
		"prompt": geminiPrompt(), "auto-edit": geminiAutoEdit(),
		"yolo": geminiYolo(),
	} {
		b.does(want, "--approval", approval, "--sandbox", "workspace-write", "--", "--no-sandbox")
	}
}

// geminiSandboxPassedOn: of two words on the sandbox the CLI takes the last, and without a container it does nothing at
// all.
func geminiSandboxPassedOn(b *bench) {
	withoutContainers(b)
	for _, approval := range []string{"prompt", "auto-edit", "yolo"} {
		o := b.does(effect{code: 1}, "--approval", approval, "--sandbox", "off", "--", "--sandbox")
		if o.report.code() != "AGENT_REFUSED" || o.stdout != "" {
			b.t.Errorf("%s: %+v", approval, o)
		}
	}
}

// geminiPlace is a bench whose home stays between runs: a model server of the test answers in place of a rehearsal.
type geminiPlace struct {
	*bench
	server *modelserver.Server
}

const geminiKey = "the-key-of-a-person"

// geminiSettle makes that place. trust is what a person said of the workspace; empty: nothing.
func geminiSettle(b *bench, script, trust string) *geminiPlace {
	b.t.Helper()
	p := &geminiPlace{b, geminiServer(b, script)}
	b.put(filepath.Join(b.home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
		"general":{"enableAutoUpdate":false,"enableAutoUpdateNotification":false,"maxAttempts":1,"sessionRetention":{"enabled":false}}}`)
	if trust != "" {
		data, err := json.Marshal(map[string]string{b.work: trust})
		if err != nil {
			b.t.Fatal(err)
		}
		b.put(filepath.Join(b.home, ".gemini", "trustedFolders.json"), string(data))
	}
	b.env = append(b.env, "GEMINI_API_KEY="+geminiKey, "GOOGLE_GEMINI_BASE_URL="+p.server.URL())
	return p
}

// geminiServer admits only who has the key.
func geminiServer(b *bench, script string) *modelserver.Server {
	b.t.Helper()
	backend, err := modelserver.ParseScript([]byte(script))
	if err != nil {
		b.t.Fatal(err)
	}
	server, err := modelserver.Start(backend, modelserver.Options{Key: geminiKey})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = server.Close() })
	return server
}

// asked are the requests of the conversation since the one with that number: those that offer tools.
func (p *geminiPlace) asked(since int) []modelserver.Request {
	return slices.DeleteFunc(p.server.Requests(), func(r modelserver.Request) bool {
		return r.Number <= since ||
			len(r.Tools) == 0
	})
}

// offered says which of the tools the last question of the conversation offered.
func (p *geminiPlace) offered(names ...string) string {
	p.t.Helper()
	all := p.asked(0)
	if len(all) == 0 {
		p.t.Fatal("the model was not asked")
	}
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(all[len(all)-1].Tools, func(t modelserver.Tool) bool { return t.Name == name }) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// transcripts are the sessions that the CLI keeps in the home.
func (p *geminiPlace) transcripts() []string {
	files, _ := filepath.Glob(filepath.Join(p.home, ".gemini", "tmp", "*", "chats", "*.jsonl"))
	return files
}
