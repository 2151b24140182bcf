package guard

import "testing"

// TestRoutes: a rule about a tool of Claude's is one about the route that does the same, and the routes have their own
// set of denials.
func TestRoutes(t *testing.T) {
	t.Parallel()
	bash := func(line string) Call { return Call{Tool: "SysBuiltIn.bash", Kind: "command", Command: line} }
	file := func(tool, kind string) Call {
		return Call{Tool: "SysBuiltIn." + tool, Kind: kind, Paths: []string{"src/a"}}
	}
	for _, c := range []struct {
		rule string
		call Call
		want Decision
	}{
		{"allow Bash(go test:*)", bash("go test ./..."), Allow},
		{"allow Bash(go test:*)", bash("go vet ./..."), Ask},
		{"allow SysBuiltIn.bash(go test:*)", bash("go test ./..."), Allow},
		{"deny Bash(git push:*)", bash("git push"), Deny},
		{"deny SysBuiltIn", bash("ls"), Deny},
		{"deny SysBuiltIn.bash", file("read_file", "read"), Allow},
		{"deny Read(src/**)", file("read_file", "read"), Deny},
		{"ask Edit(src/**)", file("write_file", "write"), Ask},
		{"deny Edit", file("edit_text", "write"), Deny},
		{"deny Write", file("write_file", "write"), Deny},
		{"allow Read", file("todo_write", "other"), Allow},
		{"deny TodoWrite", file("todo_write", "other"), Deny},
		{"allow Bash", bash(`echo "please reboot"`), Deny},
		{"allow Read", bash("git push --force"), Ask},
		{"allow Read", bash("rm -f x"), Ask},
	} {
		if v := (Judge{Known: known(), Rules: policy(t, c.rule), Place: here()}).Call(c.call); v.Decision != c.want {
			t.Errorf("%s on %s %s: %s, want %s: %+v", c.rule, c.call.Tool, c.call.Command, v.Decision, c.want,
				v.Reasons)
		}
	}
}
