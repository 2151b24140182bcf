package codex

import (
	"slices"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// passed is the passthrough, parsed for the settings that we also send.
type passed struct {
	words     []string
	overrides map[string]bool // the keys of its -c
}

func readPassed(words []string) passed {
	if i := slices.Index(words, "--"); i >= 0 {
		words = words[:i]
	}
	p := passed{words: words, overrides: map[string]bool{}}
	for _, text := range cli.PassedValues(words, "-c", "--config") {
		if key, _, ok := strings.Cut(text, "="); ok {
			p.overrides[strings.TrimSpace(key)] = true
		}
	}
	return p
}

func (p passed) has(flags ...string) bool { return cli.Passed(p.words, flags...) }

func (p passed) sets(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return p.overrides[key] })
}

// bypass reports whether it switches off both sandbox and questions. The help does not mention --yolo.
func (p passed) bypass() bool { return p.has("--dangerously-bypass-approvals-and-sandbox", "--yolo") }

// sandbox reports whether it chooses the sandbox.
func (p passed) sandbox() bool {
	return p.bypass() || p.has("--sandbox", "-s", "--approve-for-me") || p.sets("sandbox_mode", "default_permissions")
}

// overrules reports whether it overrides the sandbox of this call. A typed sandbox is sent as a flag, which overrides
// any -c.
func (p passed) overrules(s agent.Spec) bool {
	return p.bypass() || p.has("--sandbox", "-s", "--approve-for-me") || p.sandbox() && !s.Shared.Sandbox.Typed()
}

// approval reports whether it chooses when to ask, or whom.
func (p passed) approval() bool {
	return p.bypass() || p.has("--ask-for-approval", "-a", "--approve-for-me") ||
		p.sets("approval_policy", "approvals_reviewer")
}

func (p passed) model() bool { return p.has("--model", "-m") || p.sets("model") }

func (p passed) web() bool { return p.has("--search") || p.sets("web_search") }

// dir returns the directory that the agent is to work in.
func (p passed) dir() (string, bool) { return cli.PassedValue(p.words, "--cd", "-C") }

// session returns the id in "resume ID". named reports whether the run resumes or forks a session, with or without an
// id.
func (p passed) session() (id string, named bool) {
	for i, word := range p.words {
		if word != "resume" && word != "fork" {
			continue
		}
		if i > 0 && takesValue(p.words[i-1]) {
			continue
		}
		if word == "fork" {
			return "", true // it gets another session
		}
		for _, next := range p.words[i+1:] {
			if cli.IsUUID(next) {
				return strings.ToLower(next), true
			}
		}
		return "", true
	}
	return "", false
}

// takesValue reports whether the next word is the value of a flag. Values of other flags cannot be a subcommand's name.
func takesValue(word string) bool {
	return slices.Contains([]string{
		"-c", "--config", "-m", "--model", "-p", "--profile", "-C", "--cd", "-i", "--image", "--add-dir", "--enable",
		"--disable", "-o", "--output-last-message", "--output-schema", "--thread-source", "--local-provider",
	}, word)
}
