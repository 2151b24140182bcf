package policy

import (
	"context"
	_ "embed" // where package managers say it
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/process"
	"omniagent/internal/sys/workspace"
)

//go:embed packages.txt
var packagesText string

// packagesWord stands in a list of hosts for those from which the package managers of this machine download.
const packagesWord = "packages"

const (
	packagesPatience = 10 * time.Second
	longestSettings  = 1 << 20 // bytes of a file of configuration
)

// hosts returns the hosts of the list, with packagesWord replaced by the hosts of the package managers.
func (w Wanted) hosts() ([]string, error) {
	var list []string
	for _, host := range Hosts(w.Network) {
		if host != packagesWord {
			list = append(list, host)
			continue
		}
		found := w.packageHosts()
		if len(found) == 0 {
			return nil, fault.New(fault.ArgError, "no package manager here says from which host it takes packages").
				With("network", w.Network).
				Hint("Name the hosts: --network HOST,HOST, or a registry in the configuration of the package manager.")
		}
		list = append(list, found...)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// packageHosts asks the installed package managers, and reads their configuration and their variables. They run with
// the variables that they need and without programs of a workspace, so that no workspace influences the answer or
// learns a key.
func (w Wanted) packageHosts() []string {
	var (
		mu    sync.Mutex
		asked sync.WaitGroup
		list  []string
		env   = w.askingEnv()
	)
	add := func(text string, bare bool) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, hostsIn(text, bare)...)
	}
	for line := range strings.Lines(packagesText) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "ask":
			argv := strings.Fields(rest)
			if name, script, ok := strings.Cut(rest, " -c "); ok {
				argv = []string{name, "-c", script}
			}
			if path := process.Find(argv[0], process.In(env)); path != "" && !w.ofWorkspace(path) {
				asked.Go(func() { add(w.ask(append([]string{path}, argv[1:]...), env), argv[0] == "go") })
			}
		case "variable":
			for _, name := range matching(rest) {
				add(w.variable(name), strings.HasPrefix(name, "GO"))
			}
		case "file":
			name, words, _ := strings.Cut(rest, "  ")
			if !filepath.IsAbs(name) {
				name = filepath.Join(w.Home, filepath.FromSlash(name))
			}
			add(linesWith(name, strings.Fields(words)), false)
		}
	}
	asked.Wait()
	slices.Sort(list)
	return slices.Compact(list)
}

// matching returns the names of variables of the environment that match a pattern.
func matching(pattern string) (names []string) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if same, _ := path.Match(pattern, name); same {
			names = append(names, name)
		}
	}
	return names
}

// askingEnv returns the environment for asking a package manager. PATH has no directory of a workspace, because many
// package managers are scripts whose interpreter is looked up there.
func (w Wanted) askingEnv() (env []string) {
	var dirs []string
	for _, dir := range filepath.SplitList(w.variable("PATH")) {
		if filepath.IsAbs(dir) && !w.ofWorkspace(dir) {
			dirs = append(dirs, dir)
		}
	}
	env = []string{"HOME=" + w.Home, "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))}
	for line := range strings.Lines(packagesText) {
		kind, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "variable" && kind != "pass" {
			continue
		}
		for _, name := range matching(pattern) {
			env = append(env, name+"="+w.variable(name))
		}
	}
	return env
}

// ofWorkspace reports whether a program is in a directory that commands may write.
func (w Wanted) ofWorkspace(program string) bool {
	real, err := filepath.EvalSymlinks(program)
	return err != nil || slices.ContainsFunc(append([]string{w.Root}, w.Roots...), func(dir string) bool {
		at, err := filepath.EvalSymlinks(dir)
		return err != nil || pathname.Within(at, real)
	})
}

// ask returns what a program prints, or "" if it fails.
func (w Wanted) ask(argv, env []string) string {
	ctx, cancel := context.WithTimeout(context.Background(), packagesPatience)
	defer cancel()
	away := process.Programs{Env: env, Roots: append(process.Roots{w.Root}, w.Roots...), Temp: w.State}
	r, err := away.Run(ctx, process.Spec{Argv: argv, MaxOutput: 64 << 10})
	if err != nil {
		return ""
	}
	return string(r.Stdout)
}

// linesWith returns the lines of a file that contain one of the words.
func linesWith(file string, words []string) string {
	text, _ := workspace.ReadFile(file, longestSettings)
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, ";") {
			continue
		}
		if slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) }) {
			b.WriteString(line)
		}
	}
	return b.String()
}

const (
	addressText = `https?://[^\s"'<>,|]+`
	bareHost    = `^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}$`
)

// hostsIn returns the hosts of the addresses in a text, with unusual ports. With bare, a word that looks like a host
// name counts too.
func hostsIn(text string, bare bool) (list []string) {
	for _, address := range regexp.MustCompile(addressText).FindAllString(text, -1) {
		u, err := url.Parse(address)
		if err != nil || u.Hostname() == "" {
			continue
		}
		host := strings.ToLower(u.Hostname())
		if port := u.Port(); port != "" && port != "80" && port != "443" {
			host = strings.ToLower(u.Host)
		}
		list = append(list, host)
	}
	if host := regexp.MustCompile(bareHost); bare {
		for _, word := range strings.FieldsFunc(text,
			func(r rune) bool { return strings.ContainsRune(" \t\r\n,|+", r) }) {
			if host.MatchString(word) {
				list = append(list, word)
			}
		}
	}
	return list
}
