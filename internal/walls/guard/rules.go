package guard

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
	"omniagent/internal/kit/text"
)

// Rule is one line of a user's policy: a tool, and optionally a pattern for its calls. See docs/rules.md.
type Rule struct {
	decision Decision
	text     string
	source   string
	known    Known  // the tools among which it was read
	tool     string // "*": every tool
	form     event.RuleForm
	inner    string // the text in the brackets
	bare     bool   // no brackets: every call of the tool
	tokens   []token
	prefix   bool // only the beginning has to match
}

// Rules are a policy. Their order does not matter.
type Rules []Rule

// Decision returns what the rule demands.
func (r Rule) Decision() Decision { return r.decision }

// Source returns where the rule comes from.
func (r Rule) Source() string { return r.source }

func (r Rule) String() string { return r.text }

// token is one word of a rule for Bash. An unquoted star matches any text within the word.
type token struct {
	text string
	star bool
}

// Reading returns a function that reports which absolute paths the rules with a decision keep from being read; nil if
// no rule does. It leaves out rules for every file, because they apply to every call.
func (r Rules) Reading(w Decision, p Place) func(path string) bool {
	about := slices.DeleteFunc(slices.Clone(r), func(one Rule) bool {
		return one.decision != w || one.tool != "Read" ||
			one.bare
	})
	if len(about) == 0 {
		return nil
	}
	return func(path string) bool {
		return slices.ContainsFunc(about, func(one Rule) bool { return one.matchesPath(path, p) })
	}
}

// DeniedPaths is what deny rules forbid in a workspace, as far as walls can enforce it without seeing the calls.
type DeniedPaths struct {
	Unread, Unchanged []string // paths, each with everything below
	// Names of files that nobody may read or change in any directory, and of directories with everything below. * and ?
	// are wildcards, and case does not count.
	UnreadNames, UnchangedNames []string
}

// Barred returns what deny rules forbid to everybody.
func (r Rules) Barred(p Place) (b DeniedPaths) {
	roots := append([]string{p.Root}, p.More...)
	for _, one := range r {
		about := one.known.of(one.tool)
		if one.decision != Deny || one.bare || about.Rule != event.RulePath || !about.Changes && one.tool != "Read" {
			continue
		}
		paths, names := &b.Unread, &b.UnreadNames
		if about.Changes {
			paths, names = &b.Unchanged, &b.UnchangedNames
		}
		patterns, _ := one.patterns(p)
		for _, pattern := range patterns {
			name, found := strings.CutPrefix(pattern, "/**/")
			if found && strings.Trim(name, "*?.") != "" && !strings.Contains(name, "/") {
				*names = append(*names, name)
			}
			path := filepath.Clean(filepath.FromSlash(strings.TrimSuffix(pattern, "/**")))
			if !isPattern(path) && slices.ContainsFunc(roots, func(root string) bool {
				return path != root && pathname.Within(root, path)
			}) {
				*paths = append(*paths, path)
			}
		}
	}
	return b
}

// routes is the family of the tools SysBuiltIn.*, each of which does the same as a tool of Claude's.
const routes = "SysBuiltIn"

// counterpart returns the tool of Claude's that does the same as a route; "" for any other tool.
func counterpart(tool string) string {
	family, name, _ := strings.Cut(tool, ".")
	if family != routes {
		return ""
	}
	switch strings.ToLower(name) {
	case "bash":
		return "Bash"
	case "read_file":
		return "Read"
	case "write_file":
		return "Write"
	case "edit_text":
		return "Edit"
	case "todo_write":
		return "TodoWrite"
	}
	return ""
}

// Known are the tools that rules may name, in addition to mcp__….
type Known []event.ToolSpec

// names returns the names that a rule may begin with.
func (k Known) names() []string {
	names := []string{routes}
	for _, t := range k {
		names = append(names, t.Name)
	}
	return names
}

// of returns a known tool, or the zero value.
func (k Known) of(name string) event.ToolSpec {
	for _, t := range k {
		if t.Name == name || t.Name == counterpart(name) {
			return t
		}
	}
	return event.ToolSpec{}
}

// Rule parses a rule. source says where it comes from, or is empty.
func (k Known) Rule(w Decision, written, source string) (Rule, error) {
	bad := func(offset int, hint, format string, args ...any) (Rule, error) {
		from := ""
		if source != "" {
			from = " (" + source + ")"
		}
		f := fault.New(fault.ArgError, "the %s rule %q%s does not parse: byte %d: %s", w, written, from, offset,
			fmt.Sprintf(format, args...))
		if f = f.Hint("%s", hint).With("offset", offset); source != "" {
			f = f.With("source", source)
		}
		return Rule{}, f
	}
	const forms = "a rule is a tool, or a tool with brackets: Bash(git diff:*), Read(~/notes/**), " +
		"WebFetch(domain:example.com), mcp__server__tool"
	if i := strings.IndexFunc(written, control); i >= 0 {
		return bad(i, forms, "a control character")
	}
	name, rest, brackets := strings.Cut(written, "(")
	if name == "" {
		return bad(0, forms, "no tool is named")
	}
	for i, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' ||
			r == '.') && name != "*" {
			return bad(i, forms, "%q does not belong into the name of a tool", r)
		}
	}
	family, _, _ := strings.Cut(name, ".")
	isMCP := strings.HasPrefix(name, "mcp__")
	if !isMCP && name != "*" && !slices.Contains(k.names(), family) {
		if near := text.Nearest(name, k.names()); near != "" {
			return bad(0, "did you mean "+near+"? Names of tools are written exactly", "there is no tool %q", name)
		}
		return bad(0, forms, "there is no tool %q", name)
	}
	r := Rule{
		decision: w, text: written, source: source, known: k, tool: name, form: k.of(name).Rule, bare: !brackets,
	}
	if !brackets {
		if i := strings.IndexByte(written, ')'); i >= 0 {
			return bad(i, forms, "a closing bracket without an opening one")
		}
		return r, nil
	}
	at := len(name) + 1
	if !strings.HasSuffix(rest, ")") {
		if i := strings.LastIndexByte(rest, ')'); i >= 0 {
			return bad(at+i+1, forms, "something stands behind the closing bracket")
		}
		return bad(len(written), "add the closing bracket", "the bracket is not closed")
	}
	r.inner = strings.TrimSuffix(rest, ")")
	if strings.TrimSpace(r.inner) == "" {
		return bad(at, "leave the brackets out: "+name, "the brackets are empty")
	}
	if offset, hint, why := r.specify(); why != "" {
		return bad(at+offset, hint, "%s", why)
	}
	return r, nil
}

// specify parses the text in the brackets.
func (r *Rule) specify() (offset int, hint, why string) {
	switch r.form {
	case event.RuleCommand:
		return r.command()
	case event.RulePath:
		if r.inner == "*" || r.inner == "**" {
			r.bare = true
		}
		if i := strings.IndexByte(r.inner, '['); i >= 0 {
			return i, "write * or ?", "patterns for files know no brackets"
		}
	case event.RuleHost:
		host, found := strings.CutPrefix(r.inner, "domain:")
		if !found {
			return 0, "write " + r.tool + "(domain:example.com)", "it does not begin with domain:"
		}
		if bare := strings.TrimPrefix(host, "*."); bare == "" || strings.ContainsAny(bare, "/:*?@ ") {
			return len("domain:"), "write the name of a host, without scheme, port or path",
				fmt.Sprintf("%q is not the name of a host", host)
		}
	default:
		return -1, "leave the brackets out: " + r.tool, r.tool + " takes no brackets"
	}
	return 0, "", ""
}

// command parses a rule for Bash into words, as the shell would.
func (r *Rule) command() (offset int, hint, why string) {
	inner := r.inner
	if body, found := strings.CutSuffix(inner, ":*"); found {
		inner, r.prefix = body, true
	} else if body, found := strings.CutSuffix(inner, " *"); found {
		inner, r.prefix = body, true
	}
	if i := strings.Index(inner, ":*"); i >= 0 {
		return i, "write the star at the end: Bash(git diff:*)", ":* stands in the middle"
	}
	if inner == "*" && !r.prefix {
		r.bare = true
		return 0, "", ""
	}
	if strings.TrimSpace(inner) == "" {
		return 0, "for every command write Bash", "nothing stands before the star"
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(inner), "")
	if err != nil {
		return 0, "write the command as for a shell, with its quotes closed", "it is not a command for a shell"
	}
	if len(file.Stmts) == 1 && len(file.Stmts[0].Redirs) == 0 && !file.Stmts[0].Background && !file.Stmts[0].Negated &&
		!file.Stmts[0].Semicolon.IsValid() {
		if call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr); ok && len(call.Assigns) == 0 {
			for _, arg := range call.Args {
				got := read(arg, inner, "")
				if !got.known || strings.HasPrefix(got.written, "~") {
					return int(arg.Pos().Offset()), "write the words themselves",
						"a word that is expanded can match nothing"
				}
				r.tokens = append(r.tokens, token{got.text, got.pattern && strings.Contains(got.text, "*")})
			}
			return 0, "", ""
		}
	}
	if r.prefix {
		return 0, "a rule with a star names one simple command", "it is more than one simple command"
	}
	return 0, "", "" // a rule for a whole line
}

// Stricter returns the rule that applies until a rule with a syntax error is corrected. A deny or ask rule covers the
// whole tool that it seems to name, or everything if that cannot be read; an allow rule allows nothing.
func (k Known) Stricter(w Decision, written, source string) (Rule, bool) {
	if w == Allow {
		return Rule{}, false
	}
	name := strings.TrimSpace(written)
	if i := strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}); i >= 0 {
		name = name[:i]
	}
	r := Rule{decision: w, text: written, source: source + ", which does not parse", known: k, tool: "*", bare: true}
	for _, known := range k.names() {
		if strings.EqualFold(known, name) {
			r.tool = known
		}
	}
	if server := strings.Split(name, "__"); len(server) > 1 && server[0] == "mcp" && server[1] != "" {
		r.tool = "mcp__" + server[1]
	}
	return r, true
}

// Contradiction is an allow rule that never applies, and the rule that overrides it.
type Contradiction struct{ Allow, Against Rule }

// Contradictions lists the allow rules whose calls are all covered by a deny or ask rule. A rule of which only some
// calls are covered is not listed: Bash(git:*) next to a deny of Bash(git push:*) is how a policy is written. The
// stricter rule counts in either case.
func (r Rules) Contradictions() []Contradiction {
	var all []Contradiction
	for _, a := range r {
		if a.decision != Allow {
			continue
		}
		for _, b := range r {
			if b.decision > Allow && b.covers(a) {
				all = append(all, Contradiction{a, b})
			}
		}
	}
	return all
}

// covers reports whether b covers every call that a covers.
func (b Rule) covers(a Rule) bool {
	if b.tool == "*" || b.bare && (b.tool == a.tool || coversTool(b, a.tool)) {
		return true
	}
	if b.bare || a.bare || !coversTool(b, a.tool) {
		return false
	}
	if b.inner == a.inner {
		return true
	}
	switch b.form {
	case event.RuleCommand:
		if !b.prefix || len(b.tokens) > len(a.tokens) || a.tokens == nil {
			return false
		}
		for i, t := range b.tokens {
			if t != a.tokens[i] && !(t.star && !a.tokens[i].star && glob(t.text, a.tokens[i].text)) {
				return false
			}
		}
		return true
	case event.RuleHost:
		mine, theirs := strings.TrimPrefix(b.inner, "domain:"), strings.TrimPrefix(a.inner, "domain:")
		return hostCovered(mine, strings.TrimPrefix(theirs, "*."), true) &&
			!(strings.HasPrefix(mine, "*.") && !strings.HasPrefix(theirs, "*.") &&
				strings.TrimPrefix(mine, "*.") == theirs)
	}
	body, deep := strings.CutSuffix(b.inner, "/**")
	return deep && (a.inner == body || strings.HasPrefix(a.inner, body+"/"))
}
