package codex

import (
	"strings"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

// passed is what the passthrough says of things that we would say as well.
type passed struct {
	words     []string
	overrides map[string]bool // the keys of its -c
}

func readPassed(words []string) passed {
	p := passed{words: words, overrides: map[string]bool{}}
	for i, word := range words {
		if word == "--" {
			p.words = words[:i]
			break
		}
		text, ok := "", false
		switch {
		case word == "-c" || word == "--config":
			if ok = i+1 < len(words); ok {
				text = words[i+1]
			}
		case strings.HasPrefix(word, "--config="):
			text, ok = word[len("--config="):], true
		case strings.HasPrefix(word, "-c"):
			text, ok = strings.TrimPrefix(word[2:], "="), true
		}
		if key, _, is := strings.Cut(text, "="); ok && is {
			p.overrides[strings.TrimSpace(key)] = true
		}
	}
	return p
}

func (p passed) has(flags ...string) bool { return cli.Passed(p.words, flags...) }

func (p passed) sets(keys ...string) bool {
	for _, key := range keys {
		if p.overrides[key] {
			return true
		}
	}
	return false
}

// bypass are the flags that switch the sandbox and the questions off together. The short one is not in the help.
func (p passed) bypass() bool { return p.has("--dangerously-bypass-approvals-and-sandbox", "--yolo") }

// sandbox says whether it chooses the sandbox.
func (p passed) sandbox() bool {
	return p.bypass() || p.has("--sandbox", "-s", "--approve-for-me") || p.sets("sandbox_mode", "default_permissions")
}

// overrules says whether it decides in place of the sandbox flag of this call. A typed one is a flag, which counts more
// than any -c.
func (p passed) overrules(s agent.Spec) bool {
	return p.bypass() || p.has("--sandbox", "-s", "--approve-for-me") || p.sandbox() && !s.Shared.Sandbox.Typed()
}

// approval says whether it chooses who is asked, or when.
func (p passed) approval() bool {
	return p.bypass() || p.has("--ask-for-approval", "-a", "--approve-for-me") ||
		p.sets("approval_policy", "approvals_reviewer")
}

func (p passed) model() bool { return p.has("--model", "-m") || p.sets("model") }

func (p passed) web() bool { return p.has("--search") || p.sets("web_search") }

// dir is the directory in which the agent works, ours where it names none.
func (p passed) dir() (string, bool) { return cli.PassedValue(p.words, "--cd", "-C") }

// session returns the id in "resume ID". named reports whether the run resumes any session, even one without an id.
func (p passed) session() (id string, named bool) {
	for i, word := range p.words {
		if word != "resume" && word != "fork" {
			continue
		}
		if i > 0 && takesValue(p.words[i-1]) {
			continue
		}
		if word == "fork" {
			return "", true // another session comes of it
		}
		for _, next := range p.words[i+1:] {
			if isID(next) {
				return strings.ToLower(next), true
			}
		}
		return "", true
	}
	return "", false
}

// takesValue says whether the next word belongs to this one. Of Codex's flags only these take values that could be a
// subcommand's name.
func takesValue(word string) bool {
	switch word {
	case "-c", "--config", "-m", "--model", "-p", "--profile", "-C", "--cd", "-i", "--image", "--add-dir", "--enable",
		"--disable",
		"-o", "--output-last-message", "--output-schema", "--thread-source", "--local-provider":
		return true
	}
	return false
}

// isID says whether it has the form of a UUID, as Codex's ids have.
func isID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
		if dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}
