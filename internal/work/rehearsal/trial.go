package rehearsal

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/setting"
	"omniagent/internal/llm/modelserver"
)

// The runs. Each shows several things, so that there are few.
const (
	free    = "free"    // everything is allowed; the first run, which shows whether anything works
	careful = "careful" // nothing is allowed without a question
	edits   = "edits"   // files may be changed
	walls   = "walls"   // everything is allowed, in a sandbox
	again   = "again"   // continues free
	foreign = "foreign" // in a hostile repository
	long    = "long"    // the longest prompt
)

// trial is one run of an agent. Flags that are not set have their default.
type trial struct {
	name     string
	resumes  string // the run whose session it continues
	size     bool   // its prompt has the maximum length
	approval setting.Approval
	sandbox  setting.Sandbox
	output   setting.Output
	web      string // on or off
	model    bool   // names a model
	lay      func(bench) error
	script   func(s *stage, b bench, port string) []step
}

// shared returns the flags of the run.
func (t trial) shared(s *stage) setting.Shared {
	sh := setting.Defaults()
	choose(&sh.Approval, t.approval)
	choose(&sh.Sandbox, t.sandbox)
	choose(&sh.Output, t.output)
	if t.sandbox == setting.WorkspaceWrite && s.wallsUntried() != "" {
		sh.Sandbox.Value = setting.Off
	}
	if t.web != "" {
		sh.Web = setting.AsTyped(t.web == "on")
	}
	if t.model {
		sh.Model = setting.AsTyped(s.model())
	}
	return sh.Derive()
}

func choose[T ~string](flag *setting.Chosen[T], value T) {
	if value != "" {
		*flag = setting.AsTyped(value)
	}
}

// step is a step of a script.
type step map[string]any

func shell(command string) step { return step{"shell": command} }

func write(path string) step {
	return step{"write": step{"path": path, "content": "made by the model\n"}}
}

// answer is the last text of every script.
const answer = "the answer of the rehearsal"

func answers() step { return step{"say": answer} }

// calls connects to a port of this machine. That needs only bash.
func calls(port string) step {
	return shell("bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + port + "'")
}

// trials returns the runs, the first of which decides whether the others are needed.
func trials() []trial {
	answerOnly := func(*stage, bench, string) []step { return []step{answers()} }
	return []trial{
		{
			name: free, approval: setting.Yolo, sandbox: setting.Off, output: setting.Text,
			script: func(_ *stage, b bench, port string) []step {
				return []step{
					shell("touch inside.txt"), write("written.txt"), shell("touch " + b.tried()["outside"]),
					calls(port), answers(),
				}
			},
		},
		{
			name: careful, approval: setting.Prompt, web: "off", model: true,
			script: func(s *stage, b bench, _ string) []step {
				steps := []step{shell("touch inside.txt"), write("written.txt"), shell("touch " + b.tried()["outside"])}
				return append(append(steps, s.anyway(b)...), answers())
			},
		},
		{
			name: edits, approval: setting.AutoEdit, web: "on",
			script: func(_ *stage, b bench, _ string) []step {
				return []step{
					write("written.txt"), shell("touch inside.txt"), shell("touch " + b.tried()["outside"]),
					answers(),
				}
			},
		},
		{
			name: walls, approval: setting.Yolo, sandbox: setting.WorkspaceWrite, output: setting.StreamJSON,
			script: func(_ *stage, b bench, port string) []step {
				// an agent that parses commands finds no outside path in this one
				hidden := "D=" + b.outside + "; touch $D/hidden.txt"
				return []step{
					shell("touch inside.txt"), shell(hidden), calls(port), write(b.tried()["beyond"]),
					answers(),
				}
			},
		},
		{
			name: again, resumes: free, approval: setting.Yolo, sandbox: setting.Off, output: setting.JSON,
			script: answerOnly,
		},
		{
			name: foreign, lay: trap, approval: setting.Prompt,
			script: func(*stage, bench, string) []step { return []step{shell("touch inside.txt"), answers()} },
		},
		{name: long, size: true, script: answerOnly},
	}
}

// trials returns the runs of this agent. If the limit of its prompts is unknown, a further run has a prompt that any
// model can read.
func (s *stage) trials() []trial {
	all := trials()
	if s.limited() {
		return all
	}
	all = slices.DeleteFunc(all, func(t trial) bool { return t.name == long })
	for i := range all {
		all[i].size = all[i].name == edits
	}
	return all
}

func (s *stage) limited() bool { return s.matrix.Limit.Characters+s.matrix.Limit.Bytes > 0 }

// model returns a name in the agent's form. It is invented, so that requests contain it only because of --model.
func (s *stage) model() string {
	if strings.Contains(s.cell(agent.Model, "").Note, "provider/model") {
		return "rehearsal/" + modelName
	}
	return modelName
}

const modelName = "claude-rehearsal" // it begins like the names of real models, which some agents check

// anyway returns a step that calls the command tool as the free run called it, even if the careful run does not offer
// the tool. Without this call there might be no denial.
func (s *stage) anyway(b bench) []step {
	before := s.outcome(free)
	for role, block := range before.blocks() {
		if role == modelserver.Assistant && block.Kind == modelserver.Calling &&
			bytes.Contains(block.Input, []byte("touch inside.txt")) && block.Input[0] == '{' {
			input := bytes.ReplaceAll(block.Input, []byte(before.bench.work), []byte(b.work))
			return []step{{"call": step{"name": block.Name, "input": raw(input)}}}
		}
	}
	return nil
}

// raw is JSON that is inserted unchanged.
type raw []byte

// MarshalJSON returns the text.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

// wallsUntried returns why the sandbox cannot be tried here, or "".
func (s *stage) wallsUntried() string {
	cell := s.cell(agent.Sandbox, string(setting.WorkspaceWrite))
	if cell.Level == agent.None {
		return "" // a run shows that there is none
	}
	if missing := cli.Missing(cell.Needs, s.machine); len(missing) > 0 {
		return "it needs " + strings.Join(missing, " and ") + ", not found in PATH"
	}
	for _, need := range cell.Needs {
		for _, container := range []string{"docker", "podman"} {
			if strings.Contains("|"+need+"|", "|"+container+"|") &&
				!(strings.Contains(need, "sandbox-exec") && s.machine.Has("sandbox-exec")) {
				return "a container does not reach the model on this machine's loopback, and its image would be fetched"
			}
		}
	}
	if pathname.Within(systemTemp(), s.base) {
		return "the state directory lies in the system's temporary directory, where sandboxes let commands write"
	}
	return ""
}

const (
	short   = 256 << 10 // a prompt that any model can read
	longest = 12 << 20  // of a prompt that is sent
)

// prompt returns the prompt of the run.
func (s *stage) prompt(t trial) []byte {
	if !t.size {
		return []byte("do what the script of the rehearsal says: " + t.name + " " + s.token())
	}
	return letters(min(s.limit(), longest), "the end "+s.token())
}

// token returns a word that is only in the prompts of this rehearsal, by which earlier messages are recognised in a
// request.
func (s *stage) token() string { return "token-" + filepath.Base(s.base) }

// limit returns the longest prompt in bytes, of one-byte letters; if that is unknown, one that any model can read.
func (s *stage) limit() int64 {
	l := s.matrix.Limit
	switch {
	case l.Characters > 0 && l.Bytes > 0:
		return min(l.Characters, l.Bytes)
	case l.Characters+l.Bytes > 0:
		return l.Characters + l.Bytes
	}
	return short
}

// letters returns words with that total length, of which the last are end.
func letters(size int64, end string) []byte {
	out := bytes.Repeat([]byte("word "), int(size)/5+1)[:size]
	copy(out[len(out)-len(end):], end)
	return out
}
