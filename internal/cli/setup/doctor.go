package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/runs"
	"omniagent/internal/cli/stores"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/native"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
	"omniagent/internal/walls/sandbox"
	"omniagent/internal/work/run"
)

type check struct {
	Name     string  `json:"name"`
	OK       bool    `json:"ok"`
	Required bool    `json:"required"`
	Version  *string `json:"version"`
	Detail   *string `json:"detail"`
	Error    *string `json:"error"`
	Fix      *string `json:"fix" doc:"a command to run as written, or what to change"`
}

type dependency struct {
	Name         string  `json:"name"`
	CheckCommand string  `json:"check_command"`
	VersionRegex string  `json:"version_regex"`
	MinVersion   string  `json:"min_version"`
	Version      *string `json:"version"`
	OK           bool    `json:"ok"`
	FixCommand   string  `json:"fix_command"`
}

type sandboxData struct {
	Tier       string   `json:"tier"`
	Privileged bool     `json:"privileged" doc:"tried as root: others may be allowed less"`
	Holes      []string `json:"holes"`
}

type doctorData struct {
	Platform     string       `json:"platform"`
	Checks       []check      `json:"checks"`
	Dependencies []dependency `json:"dependencies"`
	Sandbox      sandboxData  `json:"sandbox"`

	Rehearsals []rehearsalData `json:"rehearsals" doc:"of each installed agent"`
}

// doctor is long because it is one declaration.
func (p commands) doctor() *contract.Command {
	drivers := p.Agents
	return &contract.Command{
		Path: "doctor", Summary: "check what this machine has and what its kernel can enforce",
		Class: contract.Envelope, Danger: contract.Safe, Version: "1.0.0",
		Detail: "Nothing is changed. An agent without files that tell its version is asked once, with --version. " +
			"What the kernel can enforce is tried, not read off a version. No connection is\n" +
			"opened: the proxy settings are only shown.\n\n" +
			"With --rehearse each installed agent is run on a scripted model on this machine, in a private home and " +
			"a private workspace, and what it does is\n" +
			"compared with what is claimed of it: see docs/rehearsal.md. Nothing of yours is read or changed; the " +
			"result is kept with the program's version and\n" +
			"hash, and is stale when either is another.",
		Timeout: 10 * time.Minute, Params: rehearseParams(), Validate: rehearseRules(drivers),
		LooseConfig: true, LongRunning: true, Scopes: []string{}, Output: contract.TypeOf[doctorData](),
		Volatile: []string{"checks.detail"},
		Children: slices.Concat(rehearsalCalls(drivers), versionCalls(drivers),
			[]contract.Subprocess{{Binary: "git", FixedArgs: []string{"--version"}}}),
		Tools: map[string]string{"git": gitMinimum},
		Files: append(rehearsalFiles(), stores.ProcessesFile(), versionsFile()),
		Exits: []contract.Exit{
			{Code: contract.Success, When: "every required check is well"},
			{
				Code:    contract.GeneralError,
				When:    "a required check failed, or a rehearsed agent is not as claimed; checks[] has the fix",
				Changed: contract.None,
			},
		},
		Examples: []contract.Example{
			{Description: "Everything", Command: "omniagent doctor"},
			{Description: "Only what can be enforced", Command: "omniagent doctor --fields sandbox"},
			{
				Description: "Try every installed agent, without login or network",
				Command:     "omniagent doctor --rehearse",
			},
			{Description: "Only one, as a table", Command: "omniagent doctor --rehearse codex --output plain"},
		},
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			git, gitCheck := checkGit(ctx, c)
			data := doctorData{Platform: runtime.GOOS + "/" + runtime.GOARCH, Dependencies: []dependency{git}}
			data.Checks = slices.Concat([]check{checkConfig(c)}, checkPlaces(c), []check{gitCheck})
			data.Checks = append(data.Checks, checkAgents(ctx, c, drivers)...)
			rows, tried := checkRehearsals(ctx, c, drivers)
			data.Rehearsals, data.Checks = rows, append(data.Checks, tried...)
			data.Checks = append(data.Checks, p.checkKeys(c), checkProxy(c), checkShell(c), checkRuns(ctx, c),
				checkNamespace(c))
			report := sandbox.Probe(ctx, sandbox.Options{Self: idleCommand(), Stage: true})
			if ctx.Err() != nil { // do not report an incomplete result
				return contract.Result{}, context.Cause(ctx)
			}
			data.Sandbox = sandboxData{report.Tier.String(), report.Privileged, report.Holes}
			for _, f := range report.Facts {
				data.Checks = append(data.Checks, check{
					Name: "kernel:" + f.Name, OK: f.OK, Detail: contract.OrNil(f.Detail), Fix: contract.OrNil(f.Fix),
				})
			}
			var failed []string
			for _, k := range data.Checks {
				if k.Required && !k.OK {
					failed = append(failed, k.Name)
				}
			}
			if len(failed) > 0 {
				return contract.Result{Data: data}, fault.New(fault.PreflightFailed, "required checks failed: %s",
					strings.Join(failed, ", ")).With("failed_checks", failed)
			}
			walls := &event.Walls{Name: data.Sandbox.Tier, Network: "off", Holes: data.Sandbox.Holes}
			return contract.Result{Data: data, Meta: parts.SandboxMeta(walls)}, nil
		},
	}
}

// ForPeople makes the lines fit the screen.
func (doctorData) ForPeople() {}

// PlainText returns a line for each check, with problems and their fix below it.
func (d doctorData) PlainText() string {
	var b strings.Builder
	for _, k := range d.Checks {
		mark := map[bool]string{true: "ok", false: "--"}[k.OK]
		if !k.OK && k.Required {
			mark = "FAIL"
		}
		var about []string
		for _, s := range []*string{k.Version, k.Detail, k.Error} {
			if s != nil {
				about = append(about, *s)
			}
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-4s  %-24s  %s", mark, k.Name, strings.Join(about, "  ")),
			" "))
		if k.Fix != nil {
			fmt.Fprintf(&b, "%6sfix: %s\n", "", *k.Fix) // indented less than the details, so that a long command fits
		}
	}
	for _, r := range d.Rehearsals {
		if len(r.Findings) > 0 {
			r.table(&b)
		}
	}
	fmt.Fprintf(&b, "\nWalls that can be built here: %s", d.Sandbox.Tier)
	if d.Sandbox.Privileged {
		b.WriteString(" (tried as root; other users may be allowed less)")
	}
	b.WriteString(".\n")
	if n := len(d.Sandbox.Holes); n > 1 { // a long list would push the checks off the screen
		fmt.Fprintf(&b, "They leave %d things open, which omniagent sandbox explain . lists.\n", n)
	} else if n == 1 {
		fmt.Fprintf(&b, "  They do not stop: %s\n", d.Sandbox.Holes[0])
	}
	summary, next := d.summary()
	fmt.Fprintf(&b, "\n%s\nNext: %s\n", summary, next)
	return b.String()
}

// summary returns a sentence about the checks, and the one thing to do next.
func (d doctorData) summary() (sentence, next string) {
	var failed, missing, agents []string
	keys := false
	for _, k := range d.Checks {
		agent, isAgent := strings.CutPrefix(k.Name, "agent:")
		switch {
		case !k.OK && k.Required:
			if failed = append(failed, k.Name); next == "" && k.Fix != nil {
				next = *k.Fix
			}
		case isAgent && k.OK && agent != native.Name:
			agents = append(agents, agent)
		case k.Name == keysCheck && k.OK:
			keys = k.Detail != nil && *k.Detail != noKeys
		case !isAgent && !k.OK && !strings.HasPrefix(k.Name, "rehearsal:"):
			missing = append(missing, k.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return fmt.Sprintf("Not ready: %s.", strings.Join(failed, ", ")), cmp.Or(next, "fix what FAIL names above")
	case len(agents) == 0 && keys:
		sentence, next = "Ready. There is a key for the built-in agent.", "omniagent chat"
	case len(agents) == 0:
		sentence = "Ready, but no agent is installed beside the built-in one."
		next = "omniagent login anthropic, or install an agent with its fix above"
	default:
		sentence = fmt.Sprintf("Ready. Installed: %s.", strings.Join(agents, ", "))
		next = "omniagent --agent " + agents[0]
	}
	if len(missing) > 0 {
		sentence += fmt.Sprintf(" Missing, but not required: %s.", strings.Join(missing, ", "))
	}
	return sentence, next
}

// idleCommand returns the command line of a harmless call of this program, for a trial of the walls.
func idleCommand() []string {
	path, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{path, "--version"}
}

// checkNamespace checks whether agents run in a PID namespace, which ends them if all of our processes are killed at
// once.
func checkNamespace(c *contract.Call) check {
	k := check{Name: "agents end with us", OK: true}
	gap := "an agent goes on if all of our processes are killed at the same moment"
	if c.Config.String(runs.NamespaceKey) == runs.NamespaceOff {
		gap += "; omniagent cleanup --live ends what is left then"
		k.Detail = &gap
		return failed(k, fault.New(fault.ServiceDown, "%s is %s", runs.NamespaceKey, runs.NamespaceOff),
			"omniagent config unset "+runs.NamespaceKey+" --global")
	}
	err := process.CheckPIDNamespace()
	if err == nil {
		return k
	}
	reason, fix := sandbox.NamespaceSettings("user.max_pid_namespaces")
	if reason != "" {
		gap += "; " + reason
	}
	k.Detail = &gap
	if fix == "" && errors.Is(err, fs.ErrPermission) {
		fix = sandbox.InContainer
	}
	return failed(k, err, fix)
}

func failed(k check, err error, fix string) check {
	k.OK, k.Error, k.Fix = false, new(err.Error()), contract.OrNil(fix)
	return k
}

func checkConfig(c *contract.Call) check {
	k := check{Name: "config", OK: true, Required: true}
	if err := c.ConfigError(); err != nil {
		return failed(k, err, fault.Of(err).Suggestion)
	}
	return k
}

// checkPlaces checks whether the audit log, state and temporary files can be written.
func checkPlaces(c *contract.Call) []check {
	log := check{Name: "audit-log", OK: true, Required: true}
	if c.Paths.Data == "" {
		none := fault.New(fault.NoHome, "no home directory is known")
		return []check{failed(log, none, "set HOME to your home directory")}
	}
	place := filepath.Dir(c.AuditPath())
	if err := cmp.Or(c.AuditLog().Check(), tryWriting(place)); err != nil {
		log = failed(log, err, placeFix(place, "XDG_DATA_HOME", err))
	}
	state := check{Name: "state", OK: true, Required: true}
	if err := tryWriting(c.Paths.State); err != nil {
		state = failed(state, err, placeFix(c.Paths.State, "XDG_STATE_HOME", err))
	}
	temp := check{Name: "temp", OK: true, Required: true, Detail: contract.OrNil(c.Paths.Temp)}
	if _, err := c.Temp(); err != nil {
		temp = failed(temp, err, "export TMPDIR="+filepath.Join(c.Paths.State, "tmp"))
	}
	return []check{log, state, temp}
}

// tryWriting writes a file into a directory and removes it. Only that shows whether the disk is full.
func tryWriting(dir string) error {
	if err := workspace.MkdirAll(dir); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return err
	}
	_, err = file.Write(make([]byte, 4096))
	return cmp.Or(err, file.Close(), os.Remove(file.Name()))
}

// placeFix returns the fix for a directory that cannot be written, or the variable that names another one.
func placeFix(dir, variable string, err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "make room for " + dir + ", for example with: omniagent cleanup"
	case errors.Is(err, fs.ErrPermission):
		for !parts.FileExists(dir) && dir != filepath.Dir(dir) {
			dir = filepath.Dir(dir)
		}
		return "chmod u+rwx " + text.Shell(dir)
	}
	return "set " + variable + " to a directory that can be written to"
}

const gitMinimum = "2.20"

// checkGit checks whether git is installed and recent enough.
func checkGit(ctx context.Context, c *contract.Call) (dependency, check) {
	d := dependency{
		Name: "git", CheckCommand: "git --version", VersionRegex: `git version ([0-9.]+)`,
		MinVersion: gitMinimum, FixCommand: installGit(),
	}
	k := check{Name: "git"}
	git, err := ownGit(c)
	if err != nil {
		return d, failed(k, err, d.FixCommand)
	}
	result, err := c.Spawn(ctx, git, "--version")
	if errors.Is(err, fault.NotInstalled) {
		return d, failed(k, err, d.FixCommand)
	}
	if err != nil { // it is installed, but something else failed: the disk may be full
		return d, failed(k, err, "")
	}
	m := regexp.MustCompile(d.VersionRegex).FindStringSubmatch(string(result.Stdout))
	if m == nil {
		return d, failed(k, fault.New(fault.Internal, "git did not tell its version"), d.FixCommand)
	}
	version := strings.Trim(m[1], ".")
	d.Version, k.Version = &version, &version
	d.OK = !parts.NewerVersion(gitMinimum, version)
	if k.OK = d.OK; !d.OK {
		k = failed(k, fault.New(fault.PreflightFailed, "git %s is older than %s", version, gitMinimum), d.FixCommand)
	}
	return d, k
}

// ownGit returns the path of git, or the name alone if git is not installed. It refuses a git that is a file of the
// workspace.
func ownGit(c *contract.Call) (string, error) {
	theirs, env, brought := parts.WorkspaceOf(c), os.Environ(), ""
	for name := range process.Candidates("git", c.Host.Lookup) {
		switch {
		case !process.Runs(name):
		case !theirs.FromWorkspace(name, env):
			return name, nil
		default:
			brought = name
		}
	}
	if brought != "" {
		return "", fault.New(fault.NotInstalled, "the only git in PATH comes with the workspace: %s", brought)
	}
	return "git", nil
}

func installGit() string {
	switch runtime.GOOS {
	case "darwin":
		return "xcode-select --install"
	case "windows":
		return "winget install --id Git.Git -e --source winget"
	}
	return "sudo apt-get install -y git"
}

func checkAgents(ctx context.Context, c *contract.Call, drivers []agent.Driver) []check {
	var list []check
	for _, d := range drivers {
		row := askAgent(ctx, c, parts.KnownAgent{Driver: d})
		k := check{Name: "agent:" + row.Name, OK: row.Installed, Version: row.Version, Detail: row.Path}
		if !row.Installed {
			k = failed(k, fault.New(fault.NotInstalled, "%s is not installed", row.Title), row.InstallCommand)
		} else if words := loginOf(c, d.Describe()); words != "" {
			k.Detail = new(*k.Detail + "; " + words)
		}
		list = append(list, k)
	}
	return list
}

// loginOf describes the login of an agent, as far as its files and variables show. It starts nothing. The login may be
// in a keyring, so its absence is not a failure.
func loginOf(c *contract.Call, about agent.About) string {
	for _, name := range about.LoginKeys {
		if v, _ := c.Host.Lookup(name); v != "" {
			return "logged in by " + name
		}
	}
	for _, file := range about.LoginFiles {
		if info, err := os.Stat(filepath.Join(c.Host.Home(), file)); err == nil && info.Size() > int64(len("{}\n")) {
			return "logged in: ~/" + file
		}
	}
	if about.Login == "" || about.BuiltIn {
		return ""
	}
	return "no login is recorded, unless a keyring has one: " + about.Login
}

// checkShell reports the caller's shell.
func checkShell(c *contract.Call) check {
	shell, _ := c.Host.Lookup("SHELL")
	shell = cmp.Or(shell, "none is named by SHELL")
	return check{Name: "shell", OK: true, Detail: &shell}
}

// checkProxy reports the proxies of the environment.
func checkProxy(c *contract.Call) check {
	var found []string
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		if v, ok := c.Host.Lookup(name); ok && v != "" {
			found = append(found, name+"="+v)
		}
	}
	detail := cmp.Or(strings.Join(found, " "), "none is set")
	return check{Name: "proxy", OK: true, Detail: &detail}
}

// checkRuns reports how many runs are under way, and which wait for an answer.
func checkRuns(ctx context.Context, c *contract.Call) check {
	k := check{Name: "runs", OK: true}
	waiting, working := []string{}, 0
	for _, r := range runs.Live(ctx, c) {
		if r.Status == string(run.NeedsInput) {
			waiting = append(waiting, r.ID)
		} else {
			working++
		}
	}
	var parts []string
	if working > 0 {
		parts = append(parts, fmt.Sprintf("%d under way", working))
	}
	if len(waiting) > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting for an answer: %s", len(waiting), strings.Join(waiting, ", ")))
	}
	k.Detail = contract.OrNil(strings.Join(parts, ", "))
	return k
}
