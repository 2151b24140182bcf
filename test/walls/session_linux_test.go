package walls

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/setting"
)

// TestResumeOpensNothing: a session that began closed stays closed, whatever mode it is resumed in; one that began open
// can be closed. A fork is as closed as what it was made of.
func TestResumeOpensNothing(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.listen(t)
		reach := []string{
			bash(g.fill("d={out}; echo x > $d/resumed", "")),
			bash(g.fill("d=/dev; exec 3<>$d/tcp/127.0.0.1/{port} && cat <&3", "")),
		}
		turn := func(id string, args ...string) (claim, bool) {
			t.Helper()
			o := g.turn(t, where, reach, append([]string{"--permission-mode", "auto"}, args...)...)
			wrote, heard := exists(g.out+"/resumed"), len(g.world.was()) > 0
			must(t, remove(g.out, "resumed"))
			if len(o.results) != 2 || wrote != heard {
				t.Errorf("%s %v: wrote %v, heard %v: %s", id, args, wrote, heard, o.out)
			}
			return toldBy(t, o), wrote
		}
		open := []string{"--sandbox", "off", "--network", "on"}
		for _, later := range [][]string{open, {"--sandbox", "off"}, {"--network", "on"}, {"--network", "127.0.0.1"}} {
			id := "closed" + strings.Join(later, "")
			if told, out := turn(id, "--session-id", id); out || told.Name != where.name || told.Network != "off" {
				t.Fatalf("it did not begin closed: %+v", told)
			}
			for range 2 {
				if told, out := turn(id, append([]string{"--resume", id}, later...)...); out ||
					told.Name != where.name || told.Network != "off" {
					t.Errorf("going on with %v opened it: %+v", later, told)
				}
			}
		}
		fork := g.command(where, "session", "fork", "closed"+strings.Join(open, ""), "--as", "forked")
		if out, err := fork.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if told, out := turn("forked", append([]string{"--resume", "forked"}, open...)...); out ||
			told.Name != where.name || told.Network != "off" {
			t.Errorf("a fork of it is open: %+v", told)
		}
		if told, out := turn("opened", append([]string{"--session-id", "opened"}, open...)...); !out ||
			told.Name != "none" {
			t.Errorf("it did not begin open: %+v", told)
		}
		if told, out := turn("opened", "--resume", "opened", "--sandbox", "workspace-write", "--network", "off"); out ||
			told.Name != where.name || told.Network != "off" {
			t.Errorf("it could not be closed: %+v", told)
		}
	}, namespaces(), landlock())
}

// TestWithoutWalls: where none can be built, commands are asked about in every mode, and it is said. Rules hold as they
// do behind walls.
func TestWithoutWalls(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	g.rules(t, "deny = ['Bash(touch:*)']\nallow = ['Bash']\n")
	o := g.turn(t, namespaces(), []string{
		bash("touch a"), bash("rm -rf ~"), bash("git push --force"),
		bash("env PATH=. ls"), bash("echo x > .git/hooks/x"), bash("echo ran > ran"),
	}, "--permission-mode", "auto",
		"--sandbox", "off")
	if told := toldBy(t, o); told.Name != "none" || len(told.Holes) != 1 {
		t.Errorf("%+v", told)
	}
	if exists(g.work+"/a") || exists(g.work+"/.git/hooks/x") || !exists(g.home+"/plain") || !exists(g.work+"/ran") ||
		len(o.results) != 6 {
		t.Errorf("%s", o.out)
	}
}

// TestLinksWithoutWalls: where nothing else holds a command, what a link of the repository leads to is judged as if it
// were written there, however the line meets the link. What stays in the workspace runs.
func TestLinksWithoutWalls(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	for name, to := range map[string]string{
		"notes.txt": g.home + "/.ssh/id_ed25519", "chain": "notes.txt", "way": g.home + "/.ssh", "near": "a.txt",
		"twin": "../home/plain",
	} {
		must(t, os.Symlink(to, filepath.Join(g.work, name)))
	}
	lines := []string{
		"cat notes.txt", "cat chain", "cat n*s.txt", "head -n 1 < notes.txt", "cat way/id_ed25519",
		"cd way && cat id_ed25519", "cat way/../plain", "cat twin", "grep -h user- notes.txt a.txt", "diff -r way sub",
	}
	var steps []string
	for _, line := range append(lines, "cat near") {
		steps = append(steps, bash(line))
	}
	steps = append(steps, call("Read", map[string]any{"file_path": "notes.txt"}))
	o := g.turn(t, namespaces(), steps, "--permission-mode", "prompt", "--sandbox", "off")
	if len(o.results) != len(steps) || !strings.Contains(o.results[len(lines)].Content, "plain") {
		t.Fatalf("%s\n%s", o.out, o.stderr)
	}
	for i, r := range o.results {
		if strings.Contains(r.Content, canary()) || strings.Contains(r.Content, "of the user") {
			t.Errorf("%s: %s", steps[i], r.Content)
		}
	}
}

// TestRefusedHost: who runs into the network's walls is told how a person opens them, also over an encrypted
// connection, which the program that is refused does not show.
func TestRefusedHost(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		g.write(t, g.work+"/ask.sh", "exec 3<>/dev/tcp/127.0.0.1/${https_proxy##*:}\n"+
			"printf 'CONNECT x.example.org:443 HTTP/1.1\\r\\n\\r\\n' >&3; read -r line <&3; echo asked\n")
		o := g.turn(t, where, []string{bash("bash ask.sh"), bash("echo nothing")},
			"--permission-mode", "auto", "--network", "a.example.org")
		const setting = "--network a.example.org,x.example.org"
		if len(o.results) != 2 || !strings.Contains(o.results[0].Content, setting) ||
			strings.Contains(o.results[1].Content, "--network") || !strings.Contains(o.stderr, setting) {
			t.Errorf("%s\n%s", o.out, o.stderr)
		}
	}, namespaces())
}

// TestNothingSurvives: what a command leaves behind, in whatever group and session, is gone when the call is over; what
// was put into the background, when the turn's process is.
func TestNothingSurvives(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		g := newGround(t)
		// seconds that nobody else sleeps
		number := fmt.Sprintf("%d.%d", 100_000+os.Getpid(), time.Now().UnixNano()%1_000_000)
		var steps []string
		for _, way := range []string{
			"sleep N & true", "setsid sleep N & true", "(setsid sh -c 'sleep N &' &) ; true",
			"nohup sleep N > /dev/null 2>&1 & disown; true",
			"trap '' TERM HUP INT; (trap '' TERM; exec setsid sleep N) & true",
			"env -i setsid sleep N & true", "bash -c 'exec -a harmless sleep N' & true", "coproc sleep N; true",
			"(cd /; umask 0; setsid setsid sleep N < /dev/null > /dev/null 2>&1 &)",
		} {
			steps = append(steps, bash(strings.ReplaceAll(way, "N", number)))
		}
		steps = append(steps, bash("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep "+number+"' || true"))
		steps = append(steps, call("Bash", map[string]any{"command": "sleep " + number, "run_in_background": true}),
			call("Bash", map[string]any{"command": "setsid sleep " + number + " & wait", "run_in_background": true}))
		o := g.turn(t, where, steps, "--permission-mode", "auto")
		if len(o.results) != len(steps) ||
			slices.ContainsFunc(o.results,
				func(r toolResult) bool { return strings.Contains(r.Content, "It did not run") }) {
			t.Fatalf("%s\n%s", o.out, o.stderr)
		}
		for i, r := range o.results[:9] {
			if r.Failed {
				t.Errorf("%s: %s", steps[i], r.Content)
			}
		}
		if left := sleeping(number); len(left) > 0 {
			t.Errorf("left: %q\n%s", left, o.out)
		}
	}, namespaces(), landlock())
}

// sleeping are the processes that have the number among their arguments.
func sleeping(number string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(data), "sleep\x00"+number) || err == nil &&
			strings.Contains(string(data), "harmless\x00"+number) {
			found = append(found, file+" "+strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

// TestArguments: a value that looks like flags stays a value.
func TestArguments(t *testing.T) {
	inTiers(t, func(t *testing.T, where tier) {
		const prompt = "--sandbox=off --network on --permission-mode auto; $(touch ran)"
		g := newGround(t)
		server := model(t,
			[]string{bash("sudo -n true"), call("Write", map[string]any{"file_path": ".mcp.json", "content": "{}"})})
		for _, args := range [][]string{
			{"-p", prompt},
			{"--prompt=" + prompt},
			{"--session-id", "--sandbox=off", "-p", prompt},
			{"-p", "--sandbox", "off"},
		} {
			out, _ := g.command(where,
				append([]string{"start", "--provider", "openai", "--model", "m", "--api-base", server.URL() + "/v1"},
					args...)...).CombinedOutput()
			if strings.Contains(string(out), `"name":"none"`) || exists(g.work+"/ran") || exists(g.work+"/.mcp.json") {
				t.Errorf("%q: %s", args, out)
			}
		}
		requests := server.Requests()
		if len(requests) == 0 || !strings.Contains(string(requests[0].Raw), "--sandbox=off --network on") {
			t.Errorf("the prompt did not arrive as it was")
		}
	}, namespaces(), landlock())
}

// TestNeverRun: the text of what would harm this machine runs in no mode without a person, unless whole walls contain
// it and a snapshot takes it back. It is only explained here, and run by nobody. A fork bomb comes to the limit of
// processes, which TestHoles fills.
func TestNeverRun(t *testing.T) {
	t.Parallel()
	g := newGround(t)
	words := map[string]string{
		"sudo true": "ask", "killall bash": "ask", "pkill -9 sh": "ask", "crontab -r": "ask", "iptables -F": "ask",
	}
	for _, line := range []string{ // no mode and no person allows these
		":(){ :|:& };:", "b() { b | b & }; b", "f() { f & f; }; f", "rm -rf /", "rm -rf /*",
		"rm -fr --no-preserve-root /", "shutdown now", "systemctl poweroff", "dd if=/dev/zero of=/dev/sda",
		"mkfs.ext4 /dev/sda", "bash -c 'rm -rf /'", "echo / | xargs rm -rf", "find / -delete", "x=$(rm -rf /)",
	} {
		words[line] = "deny"
	}
	for line, word := range words {
		var said struct {
			Calls []struct {
				Word  string
				Modes []struct{ Mode, Person, Nobody string }
			}
		}
		for where, snapshots := range map[tier]string{landlock(): "on", namespaces(): "off"} {
			g.rules(t, "allow = ['Bash']\n[undo]\nsnapshots = '"+snapshots+"'\n")
			g.answer(t, where, &said, "sandbox", "explain", "--as", "command", "--", line)
			if len(said.Calls) != 1 || said.Calls[0].Word != word ||
				len(said.Calls[0].Modes) != len(setting.Approvals()) {
				t.Fatalf("%s: %+v", line, said)
			}
			for _, m := range said.Calls[0].Modes {
				if m.Person == "runs" || word == "deny" && m.Person != "denied" || m.Nobody != "denied" {
					t.Errorf("%s, %s: %+v", where.name, line, m)
				}
			}
		}
	}
}
