package process

import (
	"maps"
	"runtime"
	"slices"
	"strings"
)

// EnvOptions are the differences between a child's environment and the usual one.
type EnvOptions struct {
	Interactive    bool              // a person can answer: keep editors and prompts
	PreserveLocale bool              // do not force the C locale
	TraceID        string            // passed on as OMNIAGENT_TRACE_ID
	NoColor        bool              //
	Extra          map[string]string // set last, overrides everything
}

// Environment returns base with settings that keep a child from waiting or decorating: no pager, unbuffered output and,
// unless Interactive, no editor and no prompt. Each name occurs once, with its last value, in the order of first
// appearance.
func Environment(base []string, o EnvOptions) []string {
	set := []string{
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "LESS=-F -X -R", "MORE=", "PYTHONUNBUFFERED=1",
	}
	if o.NoColor {
		set = append(set, "NO_COLOR=1")
	}
	if !o.Interactive {
		// The editor `true` does not change the text; CI=1 and the rest stop questions, notices and updates.
		set = append(set, "EDITOR=true", "VISUAL=true", "GIT_EDITOR=true", "CI=1", "NO_UPDATE_NOTIFIER=1",
			"HOMEBREW_NO_AUTO_UPDATE=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "GIT_TERMINAL_PROMPT=0")
	}
	if !o.PreserveLocale {
		set = append(set, "LC_ALL=C", "LC_NUMERIC=C")
	}
	if o.TraceID != "" {
		set = append(set, "OMNIAGENT_TRACE_ID="+o.TraceID)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		set = append(set, name+"="+o.Extra[name])
	}
	return once(slices.Concat(base, set))
}

// once keeps the last value of every name, at the place of the first. It drops entries that are not NAME=value.
func once(env []string) []string {
	place := make(map[string]int, len(env))
	out := make([]string, 0, len(env))
	for _, entry := range env {
		name, _, ok := cut(entry)
		if !ok {
			continue
		}
		if at, known := place[fold(name)]; known {
			out[at] = entry
			continue
		}
		place[fold(name)] = len(out)
		out = append(out, entry)
	}
	return out
}

// cut splits an entry. Windows has names that begin with "=", such as "=C:".
func cut(entry string) (name, value string, ok bool) {
	if len(entry) < 2 {
		return "", "", false
	}
	at := strings.IndexByte(entry[1:], '=')
	if at < 0 || entry[0] == '=' && runtime.GOOS != "windows" {
		return "", "", false
	}
	return entry[:at+1], entry[at+2:], true
}

// fold returns a name in the form in which the system compares it.
func fold(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// Value reads a variable of an environment. The last entry counts.
func Value(env []string, name string) (value string, ok bool) {
	for _, entry := range slices.Backward(env) {
		if n, value, ok := cut(entry); ok && fold(n) == fold(name) {
			return value, true
		}
	}
	return "", false
}
