package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func codexScenarios() []scenario {
	return slices.Concat(codexPairs(), codexCells(), codexScreens(), codexHostile())
}

// What comes of the three steps of does, by the sandbox that holds.
func codexReadOnly() effect  { return effect{code: 3} }
func codexWorkspace() effect { return effect{code: 3, shell: true, write: true} }
func codexFull() effect      { return effect{code: 0, shell: true, write: true, outside: true} }
func codexUsage() effect     { return effect{code: 2} }

// codexPairs: what was not typed gives way to the passthrough, two flags for one thing are an error of the arguments,
// and the flag that switches everything off always does.
func codexPairs() []scenario {
	const (
		one      = " one-shot"
		loose    = "without a sandbox codex does everything without asking"
		nearest  = "inside the workspace it writes without asking"
		readOnly = `sandbox_mode="read-only"`
	)
	var list []scenario
	for _, c := range []struct {
		approval, sandbox string
		plain             effect
		warning           string
		cells             []string
	}{
		{"prompt", "-", codexWorkspace(), nearest, []string{"approval=prompt" + one, "denials" + one, "denial"}},
		{"prompt", "workspace-write", codexWorkspace(), nearest, []string{"sandbox=workspace-write" + one}},
		{"prompt", "off", codexFull(), loose, []string{"sandbox=off" + one}},
		{"auto-edit", "-", codexWorkspace(), "", []string{"approval=auto-edit" + one}},
		{"auto-edit", "workspace-write", codexWorkspace(), "", nil},
		{"auto-edit", "off", codexFull(), loose, nil},
		{"yolo", "-", codexFull(), "", []string{"approval=yolo" + one}},
		{"yolo", "workspace-write", codexWorkspace(), "", nil},
		{"yolo", "off", codexFull(), "", nil},
	} {
		pair := "pair " + c.approval + "/" + c.sandbox
		flags := []string{"--approval", c.approval}
		if c.sandbox != "-" {
			flags = append(flags, "--sandbox", c.sandbox)
		}
		passed := func(words ...string) []string { return slices.Concat(flags, []string{"--"}, words) }
		list = append(list, scenario{
			name:   strings.ReplaceAll(pair, "/", " "),
			covers: append(c.cells, pair, pair+", then passthrough"),
			run: func(b *bench) {
				o := b.does(c.plain, flags...)
				if !b.sentToCodex(`approvals_reviewer="user"`, `approval_policy="never"`) || b.sentToCodex("--yolo") {
					b.t.Errorf("%q: sent %q", flags, o.report.Argv)
				}
				if warned := strings.Contains(o.stderr, "omniagent: warning:"); warned != (c.warning != "") ||
					!strings.Contains(o.stderr, c.warning) {
					b.t.Errorf("%q: warnings in %s", flags, o.stderr)
				}
				if o := b.run("", slices.Concat(flags, []string{"--strict"})...); (o.code == 2) != (c.warning != "") {
					b.t.Errorf("%q --strict: %+v", flags, o)
				}
				typed := c.sandbox != "-"
				want := map[bool]effect{false: codexReadOnly(), true: codexUsage()}
				b.does(want[typed], passed("--sandbox", "read-only")...)
				b.does(codexFull(), passed("--yolo")...)
				switch {
				case c.approval != "prompt": // the same as there
				case typed:
					b.does(c.plain, passed("-c", readOnly)...) // the flag counts more
					b.does(codexUsage(), passed("--approve-for-me")...)
				default:
					b.does(codexWorkspace(), passed("--approve-for-me")...)
					b.does(codexReadOnly(), passed("-c", readOnly)...)
					// Where nobody typed anything the same holds, without a word of it.
					if o := b.does(c.plain, "--strict"); !b.sentToCodex(`sandbox_mode="workspace-write"`) ||
						strings.Contains(o.stderr, "omniagent: warning:") {
						b.t.Errorf("untyped: sent %q, said %s", o.report.Argv, o.stderr)
					}
				}
			},
		})
	}
	return list
}

// codexReport is what the report of the last run says beside what all scenarios look at.
type codexReport struct {
	Argv    []string
	Dir     string   `json:"cwd"`
	Records []string `json:"records"`
	Told    bool     `json:"denials_known"`
	Denials []struct {
		Tool, Reason string
		CallID       string `json:"call_id"`
	}
	Policies []struct{ Feature, Enforced, Note string }
}

func (b *bench) codexReport() codexReport {
	b.t.Helper()
	var r codexReport
	data, err := os.ReadFile(filepath.Join(b.home, "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// sentToCodex reports whether the last run had all of these arguments.
func (b *bench) sentToCodex(words ...string) bool {
	argv := b.codexReport().Argv
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(argv, w) })
}
