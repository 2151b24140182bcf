package safety

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
	"omniagent/internal/kit/text"
	"omniagent/internal/native"
	"omniagent/internal/native/engine"
	"omniagent/internal/native/tool"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/guard"
	"omniagent/internal/walls/policy"
	"omniagent/internal/walls/sandbox"
)

type explained struct {
	Subject        string       `json:"subject"`
	Kind           string       `json:"kind" enum:"path,command"`
	Agent          *string      `json:"agent" doc:"the installed agent behind them; null: the native one"`
	Walls          *event.Walls `json:"walls" doc:"what can be built here, as it was tried"`
	WallsError     *string      `json:"walls_error"`
	Effects        []effectRow  `json:"effects" doc:"of a path: what a command behind the walls can do with it"`
	Places         []placeRow   `json:"places" doc:"what commands see of the home directory, as far as it is there"`
	Calls          []callRow    `json:"calls" doc:"the tools that would do it"`
	Contradictions [][2]ruleRow `json:"contradictions" doc:"rules that allow what others forbid; the stricter counts"`
	Problems       []string     `json:"problems" doc:"rules that do not parse; until then the stricter reading counts"`
}

type callRow struct {
	Tool    string        `json:"tool"`
	Word    string        `json:"word" enum:"allow,ask,deny" doc:"what the rules say, whatever the mode"`
	Reasons []guardReason `json:"reasons" doc:"the worst first"`
	Modes   []modeRow     `json:"modes" doc:"what happens in each permission mode"`
}

type effectRow struct {
	Access  string `json:"access" enum:"read,write"`
	Allowed bool   `json:"allowed"`
	Why     string `json:"why"`
}

type placeRow struct {
	Path string `json:"path"`
	Why  string `json:"why"`
	How  string `json:"how" doc:"what commands may do there"`
}

type guardReason struct {
	Word   string `json:"word" enum:"allow,ask,deny"`
	Text   string `json:"text"`
	Piece  string `json:"piece" doc:"the part of the command, or the path"`
	Source string `json:"source" doc:"built in, or where the rule stands"`
}

type modeRow struct {
	Mode   string `json:"mode"`
	Person string `json:"person" enum:"runs,asks,denied" doc:"where somebody can be asked"`
	Nobody string `json:"nobody" enum:"runs,denied" doc:"where nobody can be"`
}

type ruleRow struct {
	Word   string `json:"word"`
	Rule   string `json:"rule"`
	Source string `json:"source"`
}

func (p commands) sandboxExplain() *contract.Command {
	return &contract.Command{
		Path: "sandbox explain", Summary: "say what walls and rules make of a path or a command",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Nothing is run but a trial of the walls, and with --network packages the package managers that say " +
			"from where they take packages. One word with a slash, or the name of something that " +
			"exists, is a path; anything else is a command.",
		Scopes: []string{}, Output: contract.TypeOf[explained](), Volatile: []string{
			"walls", "walls_error", "places",
			"calls.modes",
		},
		Params: append([]contract.Param{
			{
				Name: "subject", Kind: contract.Text, Position: 1, Variadic: true, Required: true,
				Help: "a path, or a command behind --",
			},
			{Name: "as", Kind: contract.Enum, Enum: []string{"path", "command"}, Help: "what the subject is"},
			{Name: "agent", Kind: contract.Name, Help: "an installed agent, behind the walls around it"},
		}, wallParams()...),
		Children: []contract.Subprocess{{Binary: "omniagent", FixedArgs: []string{}}},
		// the trial creates mount points, which are recorded for other processes
		Files: []contract.FileEffect{stores.WallsFile(), stores.TriedWallsFile()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is explained"},
			{Code: contract.NotFound, When: "there is no such agent, or it is not installed"},
			{Code: contract.PreconditionFailed, When: "the workspace is a home directory, or the agent's own one is"},
		},
		Examples: []contract.Example{
			{Description: "May it read a key", Command: "omniagent sandbox explain ~/.ssh/id_ed25519"},
			{Description: "Would a command run", Command: "omniagent sandbox explain -- git push"},
			{
				Description: "May Codex write it",
				Command:     "omniagent sandbox explain --agent codex ~/.codex/config.toml",
			},
		},
		Run: p.runSandboxExplain,
	}
}

func (p commands) runSandboxExplain(_ context.Context, c *contract.Call) (contract.Result, error) {
	w, err := p.sandboxOf(c)
	if err != nil {
		return contract.Result{}, err
	}
	if name := c.String("agent"); name != "" && name != native.Name {
		return p.explainAgent(c, name, w)
	}
	known := guard.Known(p.Tools.Specs())
	rules, problems := parts.RulesOf(c, known)
	w.DeniedPaths = rules.Barred(guard.Place{Root: w.Root, More: w.Roots, Dir: w.Root, Home: w.Home})
	limits, err := w.Policy()
	if err != nil {
		return contract.Result{}, err
	}
	data := explained{Places: placesOf(limits.Places)}
	var walls *policy.Walls
	report, wanted := sandbox.Report{}, c.Config.String("native.sandbox") != "off"
	if !wanted {
		data.WallsError = contract.OrNil("native.sandbox is off, so none stand around commands")
	} else if walls, err = policy.Open(w); err != nil {
		data.WallsError = contract.OrNil(err.Error())
	} else {
		defer func() { _ = walls.Close() }()
		report.Tier = walls.Tier()
	}
	data.Walls = walls.Enforced()
	for _, problem := range problems {
		data.Problems = append(data.Problems, problem.Error())
	}
	for _, pair := range rules.Contradictions() {
		data.Contradictions = append(data.Contradictions, [2]ruleRow{rowOf(pair.Allow), rowOf(pair.Against)})
	}
	strength := native.Strength(walls, wanted)
	judge := guard.Judge{
		Rules: rules, Known: known, Place: native.PlaceOf([]string{limits.Root}, w.Home, w.Agents, c.Host.Lookup),
	}
	judge.Place.Containment = guard.Containment{
		Walls: walls.Whole(), Network: data.Walls.Network != "off", Cover: coverOf(c, limits.Root),
		Trees: limits.Repositories, OpenDirs: sandbox.GitDirs(limits.Root),
	}
	words := c.Strings("subject")
	if data.Kind = c.String("as"); data.Kind == "" {
		data.Kind = kindOf(c, words)
	}
	if data.Kind == "path" {
		data.Subject = words[0]
		path := c.Abs(expandHome(words[0], w.Home))
		for _, e := range limits.Explain(path, report) {
			data.Effects = append(data.Effects, effectRow{e.Access, e.Allowed, e.Why})
		}
		data.judge(judge, strength, "Read", tool.Action{Kind: event.Read, Paths: []string{path}})
		data.judge(judge, strength, "Edit", tool.Action{Kind: event.Write, Changes: true, Paths: []string{path}})
		if err := fileToolError(limits.Root, path); err != nil {
			for i := range data.Calls {
				data.Calls[i].refuse(err)
			}
		}
		return contract.Result{Data: data, Meta: parts.SandboxMeta(data.Walls)}, nil
	}
	data.Subject = words[0]
	if len(words) > 1 {
		data.Subject = text.Shell(words...)
	}
	data.judge(judge, strength, "Bash", tool.Action{Kind: event.Shell, Changes: true, Command: data.Subject})
	return contract.Result{Data: data, Meta: parts.SandboxMeta(data.Walls)}, nil
}

// explainAgent explains what an installed agent can do with a path. It refuses a command, because the walls around an
// agent treat all commands alike.
func (p commands) explainAgent(c *contract.Call, name string, w policy.Wanted) (contract.Result, error) {
	words := c.Strings("subject")
	if len(words) > 1 || c.String("as") == "command" {
		return contract.Result{}, fault.New(fault.ArgError, "walls around an agent hold all that it starts alike, so "+
			"--agent explains paths only").Hint("omniagent sandbox explain --agent %s PATH", name)
	}
	env := p.QuietOpener(c).Env()
	spec := agent.Spec{Dir: w.Root}
	driver, err := env.Prepare(name, &spec, nil)
	if err != nil {
		return contract.Result{}, err
	}
	name = driver.Name()
	wanted := env.Wanted(driver, spec)
	wanted.Temp = w.Temp
	effects, places, err := wanted.Explain(c.Abs(expandHome(words[0], w.Home)), spec.Install.Path)
	if err != nil {
		return contract.Result{}, err
	}
	data := explained{Subject: words[0], Kind: "path", Agent: &name, Places: placesOf(places)}
	var walls *policy.AgentWalls
	if env.Bare {
		data.WallsError = contract.OrNil("agents.walls is off, so none stand around agents")
	} else if walls, err = policy.OpenAgent(wanted); err != nil {
		data.WallsError = contract.OrNil(err.Error())
	}
	defer walls.Close()
	data.Walls = walls.Enforced()
	for _, e := range effects {
		if walls == nil {
			e.Allowed, e.Why = true, "there are no walls: the rights of the user and the agent's own sandbox decide"
		}
		data.Effects = append(data.Effects, effectRow{e.Access, e.Allowed, e.Why})
	}
	return contract.Result{Data: data, Meta: parts.SandboxMeta(data.Walls)}, nil
}

// coverOf returns the directories that undo covers. It ignores the size limits of a snapshot.
func coverOf(c *contract.Call, root string) (cover guard.Cover) {
	if c.Config.String(stores.UndoKey) == "off" {
		return cover
	}
	store, err := stores.Snapshots(c)
	if err != nil {
		return cover
	}
	if _, err := store.Root(root); err == nil {
		cover.Roots = []string{root}
	}
	return cover
}

// placesOf returns rows for the places that exist, and for those that the walls provide.
func placesOf(places []sandbox.Place) (rows []placeRow) {
	for _, place := range places {
		same := func(row placeRow) bool { return row.Path == place.Path && row.How == place.Visibility.String() }
		if slices.ContainsFunc(rows, same) {
			continue
		}
		if _, err := os.Stat(place.Path); err == nil || place.Visibility == sandbox.Owned {
			rows = append(rows, placeRow{place.Path, place.Why, place.Visibility.String()})
		}
	}
	return rows
}

// kindOf guesses whether the subject is a path or a command.
func kindOf(c *contract.Call, words []string) string {
	if len(words) == 1 && !strings.ContainsAny(words[0], " \t\n|;&<>$") {
		if _, err := os.Lstat(c.Abs(words[0])); err == nil || strings.ContainsAny(words[0], `/\`) ||
			strings.HasPrefix(words[0], "~") {
			return "path"
		}
	}
	return "command"
}

func expandHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(home, rest)
	}
	return path
}

// fileToolError returns the error with which the file tools refuse a path regardless of rules and modes, or nil.
func fileToolError(root, path string) error {
	files, err := workspace.OpenDir(root)
	if err != nil {
		return err
	}
	defer files.Close()
	_, err = files.Name(path)
	return err
}

// refuse marks a call as denied in every mode.
func (r *callRow) refuse(why error) {
	word := guard.Deny.String()
	if r.Word != word {
		r.Word = word
		r.Reasons = slices.Insert(r.Reasons, 0, guardReason{word, fault.Of(why).Message, "", "workspace"})
	}
	for i := range r.Modes {
		r.Modes[i].Person, r.Modes[i].Nobody = engine.Denied, engine.Denied
	}
}

// judge adds a row with what the rules decide about a call, and what happens in each mode.
func (d *explained) judge(judge guard.Judge, walls engine.Walls, name string, a tool.Action) {
	v := judge.Call(engine.Described(name, a))
	if v.Decision == guard.Allow { // without undo as a reason to allow, the reasons say why some modes ask
		careful := judge
		careful.Place.Containment.Cover = guard.Cover{}
		v = careful.Call(engine.Described(name, a))
	}
	row := callRow{Tool: name, Word: v.Decision.String()}
	for _, r := range v.Reasons {
		row.Reasons = append(row.Reasons, guardReason{r.Decision.String(), r.Text, r.Piece, r.Source})
	}
	for _, m := range setting.Approvals() {
		person, _ := engine.Outcome(m, judge, walls, name, a, true)
		nobody, _ := engine.Outcome(m, judge, walls, name, a, false)
		if nobody == engine.Asks {
			nobody = engine.Denied
		}
		row.Modes = append(row.Modes, modeRow{string(m), person, nobody})
	}
	d.Calls = append(d.Calls, row)
}

func rowOf(r guard.Rule) ruleRow { return ruleRow{r.Decision().String(), r.String(), r.Source()} }

// ForPeople makes the lines fit the screen.
func (explained) ForPeople() {}

// PlainText returns the explanation for people.
func (d explained) PlainText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", d.Subject)
	for _, e := range d.Effects {
		verb := map[bool]string{true: "can", false: "cannot"}[e.Allowed]
		who := "A command"
		if d.Agent != nil {
			who = *d.Agent
		}
		fmt.Fprintf(&b, "%s %s %s it: %s.\n", who, verb, e.Access, e.Why)
	}
	if d.Kind == "path" && len(d.Places) > 0 {
		if d.Agent != nil {
			b.WriteString("\nOf home directories it sees, besides its own files and its program:\n")
		} else {
			b.WriteString("\nOf the home directory commands see the workspace, the user and a few settings of " +
				"~/.gitconfig, and:\n")
		}
		for _, place := range d.Places {
			fmt.Fprintf(&b, "  %s: %s; %s\n", place.Path, place.Why, place.How)
		}
	}
	for _, row := range d.Calls {
		row.print(&b, d.Subject)
	}
	for _, pair := range d.Contradictions {
		fmt.Fprintf(&b, "\nContradiction: %s %s (%s) against %s %s (%s); the stricter counts.\n", pair[0].Word,
			pair[0].Rule, pair[0].Source, pair[1].Word, pair[1].Rule, pair[1].Source)
	}
	for _, p := range d.Problems {
		fmt.Fprintf(&b, "\n%s\n", p)
	}
	fmt.Fprintf(&b, "\nWalls: %s, network %s.\n", d.Walls.Name, d.Walls.Network)
	if d.WallsError != nil {
		fmt.Fprintf(&b, "  %s\n", *d.WallsError)
	}
	for _, hole := range d.Walls.Holes {
		fmt.Fprintf(&b, "  They do not stop: %s\n", hole)
	}
	return b.String()
}

func (row callRow) print(b *strings.Builder, subject string) {
	fmt.Fprintf(b, "\n%s: the rules say %s\n", row.Tool, row.Word)
	for _, r := range row.Reasons {
		fmt.Fprintf(b, "  %-5s  %s", r.Word, r.Text)
		if r.Piece != "" && r.Piece != subject {
			fmt.Fprintf(b, " (%s)", r.Piece)
		}
		if r.Source != guard.BuiltIn {
			fmt.Fprintf(b, ", %s", r.Source)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "  %-12s %-14s %s\n", "mode", "with a person", "with nobody")
	for _, m := range row.Modes {
		fmt.Fprintf(b, "  %-12s %-14s %s\n", m.Mode, m.Person, m.Nobody)
	}
}
