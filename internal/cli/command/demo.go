package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/setup"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/host/demo"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/llm/provider"
	"omniagent/internal/native"
	"omniagent/internal/sys/process"
)

type demoData struct {
	Scenes []demo.Scene `json:"scenes"`
	Agents []demoAgent  `json:"agents" doc:"what is installed here, by files alone: nothing was started or asked"`
	Next   demoNext     `json:"next"`

	took time.Duration
}

type demoAgent struct {
	Name      string  `json:"name"`
	Installed bool    `json:"installed"`
	Version   *string `json:"version" doc:"null: not installed, or no file tells it"`
	Login     string  `json:"login" enum:"yes,no,unknown" doc:"as far as files and variables tell"`
	LoginBy   *string `json:"login_by" doc:"the variable or the file that tells it"`
}

type demoNext struct {
	Command string `json:"command"`
	Why     string `json:"why"`
}

func (p Parts) demonstration() *contract.Command {
	return &contract.Command{
		Path: "demo", Summary: "show in a few seconds what this program does",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Three scenes run in a private directory; nothing of them is left. They are: a CLI that says 0 and " +
			"is not believed, a tool that the kernel keeps in its\n" +
			"workspace, a small task from the failing check to the passing one. A script takes the place of the " +
			"model, and this program that of the CLI.\n" +
			"Then it tells which agents are installed here and gives one command for this machine. No agent is " +
			"started for that.",
		LooseConfig: true, LongRunning: true, Quiet: true, Scopes: []string{}, Output: contract.TypeOf[demoData](),
		Volatile: []string{"scenes", "agents", "next"},
		Children: []contract.Subprocess{
			{Binary: "omniagent", FixedArgs: []string{}},
			{Binary: "claude", FixedArgs: []string{"-p"}},
		},
		Files: []contract.FileEffect{
			{
				Path: "~/.local/state/omniagent-demo", Type: "temp", TTLSeconds: int(demoLeft.Seconds()),
				ClearableWith: "omniagent cleanup --scope temp",
			},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "every scene saw what it claims"},
			{
				Code: contract.GeneralError, When: "a scene saw something else; different[] tells what",
				Changed: contract.None,
			},
			{Code: contract.PermissionDenied, When: "there is no directory to play in", Changed: contract.None},
		},
		Examples: []contract.Example{
			{Description: "Everything", Command: "omniagent demo"},
			{Description: "The one command for this machine", Command: "omniagent demo --fields next"},
		},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			began := time.Now()
			self, err := os.Executable()
			if err != nil {
				return contract.Result{}, fault.New(fault.Internal, "the path of this program is not known").
					Because(err)
			}
			dir, err := demoPlace(c)
			if err != nil {
				return contract.Result{}, err
			}
			path, _ := c.Host.Lookup("PATH")
			stage := demo.Stage{Self: self, Dir: dir, Path: path, Run: demoRunner(c)}
			data := demoData{}
			if data.Scenes, err = stage.Play(ctx); err != nil {
				return contract.Result{}, err
			}
			data.Agents, data.Next = p.demoAgents(c)
			data.took = time.Since(began)
			var amiss []string
			var measured []demo.Measured
			for _, sc := range data.Scenes {
				measured = append(measured, sc.Measured())
				if !sc.OK {
					amiss = append(amiss, sc.Name)
				}
			}
			if len(amiss) > 0 {
				return contract.Result{Data: data}, fault.New(fault.SceneFailed, "not as claimed: %s",
					strings.Join(amiss, ", ")).With("scenes", amiss)
			}
			meta := map[string]any{"measured": measured}
			if c.Bool("stable-output") {
				meta = nil
			}
			return contract.Result{Data: data, Meta: meta}, nil
		},
	}
}

// demoLeft is the age at which a later demo removes the directory of one that was killed.
const demoLeft = time.Hour

// demoRunner returns the function that runs the commands of a scene.
func demoRunner(c *contract.Call) func(context.Context, string, []string, ...string) (process.Result, error) {
	return func(ctx context.Context, dir string, env []string, argv ...string) (process.Result, error) {
		return c.SpawnWith(ctx, process.Programs{Env: env}, process.Spec{Argv: argv, Dir: dir})
	}
}

// demoPlace creates a private directory for the scenes next to the state directory, or else among temporary files. It
// cannot be inside our own directories, where tools of agents may not read or write. The directory is removed at the
// end of the call, with parent directories that did not exist before.
func demoPlace(c *contract.Call) (string, error) {
	if base := demoBase(c); base != "" {
		children := filepath.Join(c.Paths.State, stores.ProcessesDir) // the call itself creates it for its children
		missing, missingToo := firstMissing(base), firstMissing(children)
		if err := os.MkdirAll(base, 0o700); err == nil {
			for _, old := range oldIn(base, time.Now().Add(-demoLeft), func(string) bool { return true }) {
				_ = os.RemoveAll(old.path)
			}
			dir, err := os.MkdirTemp(base, "")
			if err == nil {
				c.OnCleanup(func() {
					_ = os.RemoveAll(dir)
					removeEmpty(children, missingToo)
					removeEmpty(base, missing)
				})
				return dir, nil
			}
		}
		removeEmpty(base, missing)
	}
	temp, err := c.Temp()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(temp, "demo")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", fault.New(fault.PermissionDenied, "no temporary directory can be made").Because(err)
	}
	return dir, nil
}

// demoBase returns the parent directory of demos, or "" if there is no state directory.
func demoBase(c *contract.Call) string {
	for dir := c.Paths.State; dir != "" && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == c.Program.Name {
			return dir + "-demo"
		}
	}
	return ""
}

// firstMissing returns the outermost directory in path that does not exist, or "".
func firstMissing(path string) (missing string) {
	for ; ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); err == nil || filepath.Dir(path) == path {
			return missing
		}
		missing = path
	}
}

// removeEmpty removes path and its parents up to outermost, as far as they are empty.
func removeEmpty(path, outermost string) {
	for outermost != "" && len(path) >= len(outermost) && os.Remove(path) == nil {
		path = filepath.Dir(path)
	}
}

// demoAgents returns the agents that files and variables show, and the command to try next. It starts nothing.
func (p Parts) demoAgents(c *contract.Call) ([]demoAgent, demoNext) {
	var rows []demoAgent
	env := agent.Env{Lookup: c.Host.Lookup, Dir: c.Dir(), Printed: stores.Versions(c.Paths).Of}
	const try = `omniagent -p 'What is in this directory?' --agent `
	var next, login, install demoNext
	keyed, keyedBy := nativeLogin(c, p.APIs)
	for _, d := range p.Agents {
		known, _ := parts.KnownAgent{Driver: d}.Row(c)
		row := demoAgent{Name: d.Name(), Installed: known.Installed, Version: known.Version, Login: "unknown"}
		about := d.Describe()
		if d.Name() == native.Name {
			if row.Login = "no"; keyed != "" {
				row.Login, row.LoginBy = "yes", &keyedBy
			}
			rows = append(rows, row)
			continue
		}
		if finder, ok := d.(agent.LoginFinder); ok && known.Installed {
			row.Login, row.LoginBy = loginWord(finder.Login(env))
		}
		switch {
		case !known.Installed:
			if install.Command == "" {
				install = demoNext{
					about.InstallCommand,
					"no agent is installed, and there is no key for the native one. This installs " + about.Title,
				}
			}
		case row.Login == "yes" && next.Command == "":
			next = demoNext{try + d.Name(), fmt.Sprintf("%s is installed and has a login (%s)", about.Title,
				*row.LoginBy)}
		case login.Command == "":
			login = demoNext{
				"omniagent --agent " + d.Name(),
				about.Title + " is installed; it asks for a login where it has none",
			}
		}
		rows = append(rows, row)
	}
	if next.Command == "" && keyed != "" {
		next = demoNext{keyed, "the native agent needs nothing but a model, and " + keyedBy + " is set"}
	}
	for _, other := range []demoNext{login, install} {
		if next.Command == "" {
			next = other
		}
	}
	return rows, next
}

func loginWord(l agent.Login) (word string, by *string) {
	switch l.There {
	case agent.Yes:
		return "yes", &l.By
	case agent.No:
		return "no", nil
	}
	return "unknown", nil
}

// nativeLogin returns a command that asks the native agent, and what provides the key. If there are keys of several
// APIs and none is configured, the command names one. Without a key it returns "".
func nativeLogin(c *contract.Call, apis []model.API) (command, by string) {
	const ask = ` -p 'What is in this directory?'`
	options := provider.Options{
		APIs: apis, Lookup: parts.OwnPrograms(c), Home: c.Host.Home(),
		Keys:       setup.PlaceholderKeys{Store: stores.Keys(c)},
		Selections: parts.ConfiguredModel(c),
	}
	if w := parts.ProfilesOf(c)(c.Dir()).Selection(); w != nil {
		options.Selections = append(options.Selections, *w)
	}
	choice, err := provider.Choose(options)
	if err == nil {
		return "omniagent --agent native" + ask, strings.TrimSuffix(choice.How, " in the environment")
	}
	var f *fault.Fault
	if !errors.As(err, &f) {
		return "", ""
	}
	found, _ := f.Detail["found"].([]string)
	if len(found) == 0 {
		return "", ""
	}
	return "omniagent start --output-format text --provider " + provider.Owner(apis, found[0]) + ask, found[0]
}

// PlainText returns the scenes, the table of agents and the next command for people.
func (d demoData) PlainText() string {
	var b strings.Builder
	b.WriteString(
		"Three scenes, played on this machine a moment ago. No key and no network were\nused, and nothing of them is " +
			"left.\n\n")
	b.WriteString(demo.Text(d.Scenes))
	fmt.Fprintf(&b, "%d. What is here\n\n   %-10s %-12s %s\n", len(d.Scenes)+1, "AGENT", "VERSION", "LOGIN")
	for _, a := range d.Agents {
		version, login := "not installed", a.Login
		if a.Installed {
			if version = "installed"; a.Version != nil {
				version = *a.Version
			}
		}
		if a.LoginBy != nil {
			login += ", " + *a.LoginBy
		}
		if !a.Installed {
			login = ""
		}
		b.WriteString(strings.TrimRight(fmt.Sprintf("   %-10s %-12s %s", a.Name, version, login), " ") + "\n")
	}
	b.WriteString("\n" + demo.Paragraph("Next: "+d.Next.Why+"."))
	fmt.Fprintf(&b, "   $ %s\n\n%.1f s in all.\n", d.Next.Command, d.took.Seconds())
	return b.String()
}
