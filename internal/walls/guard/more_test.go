package guard

import "testing"

// TestFurtherDirectories: further directories are part of the workspace. Tools may write there, and protected names are
// protected in each.
func TestFurtherDirectories(t *testing.T) {
	alone := Place{Root: "/w/in", Dir: "/w/in", Home: "/home/u", Agents: agents()}
	with := alone
	with.More = []string{"/w/more", "/w", "/home/u/x/"}
	for path, want := range map[string][2]Decision{
		"/w/more/a": {Deny, Allow}, "/w/a": {Deny, Allow}, "/w/in/a": {Allow, Allow}, "../more/a": {
			Deny,
			Allow,
		}, "/home/u/x/a": {Deny, Allow},
		"/w/more/.git/hooks/a": {Deny, Deny}, "/w/more/.git/a": {Deny, Ask}, "/w/more/sub/.vscode/a": {
			Deny,
			Deny,
		}, "/w/.claude/a": {Deny, Deny}, "/w/in/.claude/a": {Deny, Deny},
		"/wevil/a": {Deny, Deny}, "/w/../etc/a": {Deny, Deny}, "/home/u/.ssh/a": {Deny, Deny}, "/home/u/a": {
			Deny,
			Deny,
		},
	} {
		for i, place := range []Place{alone, with} {
			v := Tools.Write(path, place)
			if v.Decision != want[i] && !(want[i] == Deny && v.Decision == Ask && v.Firm) {
				t.Errorf("%s with %v: %s", path, place.More, v.Decision)
			}
		}
	}
	// the innermost one counts, in any order
	tree := Place{Root: "/w/.claude/trees/x", More: []string{"/w"}, Dir: "/w/.claude/trees/x", Agents: agents()}
	for path, want := range map[string]Decision{
		"/w/.claude/trees/x/a": Allow, "/w/.claude/trees/y/a": Deny,
		"/w/a": Allow,
	} {
		for _, place := range []Place{tree, {Root: "/w", More: []string{tree.Root}, Dir: "/w", Agents: agents()}} {
			if v := Tools.Write(path, place); v.Decision != want && !(want == Deny && v.Firm) {
				t.Errorf("%s in %+v: %s", path, place, v.Decision)
			}
		}
	}
	for line, want := range map[string][2]Decision{
		"cat /w/more/a": {Ask, Allow}, "cat /etc/hosts": {Ask, Ask}, "cat ../more/a": {
			Ask,
			Allow,
		}, "echo x > /w/more/.git/hooks/a": {Ask, Ask}, "cat /home/u/.ssh/id": {Deny, Deny},
	} {
		for i, place := range []Place{alone, with} {
			if v := (Judge{Known: known(), Place: place}).Call(Call{
				Tool: "Bash", Kind: "command", Command: line,
			}); v.Decision != want[i] {
				t.Errorf("%s with %v: %s", line, place.More, v.Decision)
			}
		}
	}
}

// TestKept: what git's configuration names is a person's to change, by whatever name a tool reaches it.
func TestKept(t *testing.T) {
	t.Parallel()
	place := here()
	place.Kept = func() []string { return []string{"/w/ws/.githooks", "/w/ws/tools/clean.sh"} }
	for path, asked := range map[string]bool{
		".githooks/pre-commit": true, ".githooks": true, "tools": true, "tools/clean.sh": true, "TOOLS/clean.SH": true,
		"sub/../tools/clean.sh": true, "tools/other.sh": false, "githooks/x": false, "a.txt": false,
	} {
		v := Tools.Write(path, place)
		if (v.Decision == Ask) != asked || v.Firm != asked {
			t.Errorf("%s: %+v", path, v)
		}
	}
}
