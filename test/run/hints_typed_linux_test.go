package run

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"omniagent/internal/testkit/hermetic"
)

// typedHint is an error and the way out of it, as a person types them.
type typedHint struct {
	before   string // lines that succeed
	fails    string
	terminal bool   // the failing line is typed at a terminal
	hint     string // what is advised
	does     string // that, with the words of the caller in it; it succeeds
	shows    string // and shows this
	again    bool   // and the failing line succeeds after it
}

// typedHints are the hints that TestHintsTyped follows. ID is the newest run, TURN the newest turn.
func typedHints() map[string]typedHint {
	const (
		commit  = "git init -q; echo one >a.txt; git add -A; git -c user.name=a -c user.email=a@b commit -qm one; echo two >a.txt"
		allow   = "omniagent agents allow fine"
		runs    = "omniagent run --agent fine --yolo -p x"
		asks    = "omniagent run --agent fine --yolo -p x --require colour='Which?' || [ $? = 4 ]"
		forked  = "omniagent fork run --name try -- touch made"
		waiting = "omniagent fork run --name try -- sleep 60 >/dev/null 2>&1 & " +
			`until omniagent fork list | grep -q '"running":\[[0-9]'; do sleep 0.1; done`
		died = `omniagent --agent slow -p x >/dev/null 2>&1 & until [ -e made ]; do sleep 0.1; done; kill -9 $!`
		open = `{ (echo '{"type":"user","message":{"role":"user","content":"x"}}'; sleep 60) | omniagent start ` +
			`--provider openai -m m --session-id s1 --input-format stream-json; } >talk 2>&1 & ` +
			"until grep -q '\"result\"' talk; do sleep 0.1; done"
		cut = `omniagent --agent many -p x; omniagent undo --take-all >/dev/null 2>&1 & ` +
			`until find "$HOME/.local/state/omniagent/undo" -name journal.json | grep -q .; do :; done; kill -9 $!`
		load = "rm -f in; mkfifo in; { " + `printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize",` +
			`"params":{"protocolVersion":1}}' '{"jsonrpc":"2.0","id":2,"method":"session/load",` +
			`"params":{"sessionId":"s1","cwd":"'"$WORK"'","mcpServers":[]}}'; sleep 5; } >in 2>/dev/null & `
		write = "git init -q; omniagent start --provider openai -m m --approval yolo -p write"
		file  = ".local/state/omniagent/agents.json"
	)
	return map[string]typedHint{
		"-- without an agent": {
			fails: "omniagent -p x -- --swift", hint: "omniagent --agent NAME -- --swift",
			does: "omniagent --agent fine -p x -- --swift", shows: "done --swift",
		},
		"--with-stdin alone": {
			fails: "echo text | omniagent --agent fine --with-stdin", hint: `omniagent -p "review this" --with-stdin`,
			does: `echo text | omniagent --agent fine -p "review this" --with-stdin`, shows: "done",
		},
		"--with-stdin at a terminal": {
			before: commit, terminal: true, fails: "omniagent --agent fine -p x --with-stdin",
			hint: `git diff | omniagent -p "review this" --with-stdin`,
			does: `git diff | omniagent --agent fine -p "review this" --with-stdin`, shows: "done",
		},
		"events without a prompt": {
			terminal: true, fails: "omniagent --agent fine --output events", hint: `omniagent -p "…" --output events`,
			does: `omniagent --agent fine -p "…" --output events`, shows: "done",
		},
		"a schema without a prompt": {
			terminal: true, fails: "omniagent --agent fine --output-schema '{}'",
			hint: `omniagent -p "…" --output-schema FILE`,
			does: `echo '{}' >FILE; omniagent --agent json -p "…" --output-schema FILE`, shows: `{"n":1}`,
		},
		"an empty pipe": {
			fails: "printf ' ' | omniagent --agent fine", hint: `omniagent -p "what is to be done", or pipe some text`,
			does: `omniagent --agent fine -p "what is to be done"; echo text | omniagent --agent fine`, shows: "done",
		},
		"a slow pipe": {
			fails: "(sleep 5; echo text) | omniagent --agent fine --timeout 1s",
			hint:  `omniagent -p "what is to be done" gives it directly`,
			does:  `omniagent --agent fine -p "what is to be done"`, shows: "done",
		},
		"an agent with a wrong letter": {
			fails: "omniagent --agent fyne -p x", hint: "omniagent --agent fine",
			does: "omniagent --agent fine -p x", shows: "done",
		},
		"a login for nothing": {
			fails: "omniagent login", hint: "omniagent login anthropic",
			does: "KEY=sk-ant-0123456789 omniagent login anthropic --token-env-var KEY", shows: `"created"`,
		},
		"no task": {
			fails: "omniagent run --agent fine -p ' '", hint: "omniagent run --agent claude -p 'What to do'",
			does: "omniagent run --agent fine --yolo -p 'What to do'", shows: "succeeded",
		},
		"no answer": {
			before: asks, fails: "omniagent answer", hint: "omniagent answer 'TEXT'",
			does: "omniagent answer 'TEXT'", shows: "succeeded",
		},
		"a review of no diff": {
			before: commit, fails: "echo text | omniagent review --agent json",
			hint: "git diff | omniagent review, or omniagent review --base origin/main",
			does: "git diff | omniagent review --agent native --provider openai -m m || [ $? = 83 ]", shows: `"files":1`,
		},
		"a review of no branch": {
			before: commit, fails: "omniagent review --agent json --base nothing",
			hint: "git diff … | omniagent review takes any diff",
			does: "git diff HEAD | omniagent review --agent native --provider openai -m m || [ $? = 83 ]", shows: `"files":1`,
		},
		"a chat that continues nothing": {
			fails: "omniagent chat --agent native --plain --continue </dev/null", hint: "omniagent chat begins one",
			does: "echo hello | omniagent chat --agent native --provider openai -m m --plain", shows: "hello",
		},
		"a chat in a pipe": {
			fails: "echo hello | omniagent chat", hint: "omniagent --agent native -p TEXT answers one message",
			does:  "omniagent --agent native --provider openai -m m -p TEXT; echo hello | omniagent chat --provider openai -m m --plain",
			shows: "hello",
		},
		"a rehearsal without a message": {
			fails: "omniagent start --rehearse </dev/null", hint: "omniagent start --rehearse -p hi",
			does: "omniagent start --rehearse -p hi", shows: `"result"`,
		},
		"a setting of your own file": {
			fails: "omniagent config set native.allow 'Bash(go test:*)'", does: "omniagent config set native.allow " +
				"'Bash(go test:*)' --global", hint: "omniagent config set native.allow 'Bash(go test:*)' --global",
			shows: `"created"`,
		},
		"not in agents.allow": {
			before: "omniagent config set agents.allow native --global",
			fails:  runs, hint: "omniagent config set agents.allow native,fine --global",
			does: "omniagent config set agents.allow native,fine --global", shows: `"updated"`, again: true,
		},
		"a damaged list of agents": {
			before: "echo x >$HOME/" + file, fails: runs,
			hint: "look at it and move it away, then run: omniagent agents allow fine",
			does: "mv $HOME/" + file + " old; " + allow, shows: `"fine"`, again: true,
		},
		"a changed program": {
			before: `printf '#!/bin/sh\necho other\n' >"$BIN/fine"`, fails: runs,
			hint: "look at the program, then run: omniagent agents allow fine",
			does: allow, shows: `"fine"`, again: true,
		},
		"a directory for all": {
			before: `chmod o+w "$BIN"`, fails: runs, hint: "then run: omniagent agents allow fine",
			does: `chmod o-w "$BIN"; ` + allow, shows: `"fine"`, again: true,
		},
		"a damaged list of what is trusted": {
			before: "git init -q; mkdir -p .omniagent; echo 'output = \"json\"' >.omniagent/config.toml; " +
				`omniagent trust; echo x >"$HOME/.local/state/omniagent/trust.json"`,
			fails: "omniagent trust", hint: "move it away, then run omniagent trust",
			does: `mv "$HOME/.local/state/omniagent/trust.json" old; omniagent trust`, shows: `"ok":true`, again: true,
		},
		"a retry of what waits": {
			before: asks, fails: "omniagent runs retry ID", hint: "omniagent runs cancel ID",
			does: "omniagent runs cancel ID", shows: "cancelled",
		},
		"no fork to bring home": {
			before: runs, fails: "omniagent runs apply ID", hint: "omniagent runs diff ID; omniagent undo --run ID",
			does: "omniagent runs diff ID; omniagent undo --run ID || [ $? = 3 ]", shows: "made",
		},
		"two names for one session": {
			before: "omniagent start --provider openai -m m --session-id s1 -p hello",
			fails:  "omniagent start --resume s1 --session-id s2 -p x", hint: "omniagent session fork",
			does: "omniagent session fork s1", shows: `"forked_from":"s1"`,
		},
		"a session that is not kept": {
			before: "omniagent start --provider openai -m m --session-id s1 -p hello",
			fails:  "omniagent start --resume s1 --no-session-persistence -p x",
			hint:   "leave out --no-session-persistence, or fork it: omniagent session fork",
			does:   "omniagent session fork s1; omniagent start --provider openai -m m --resume s1 -p x", shows: "hello",
		},
		"a fork in which nothing runs": {
			before: forked, fails: "omniagent fork open try :3000", hint: "omniagent fork run --name try -- COMMAND",
			does: "omniagent fork run --name try -- echo it runs", shows: "it runs",
		},
		"no port": {
			before: waiting, fails: "omniagent fork open try :0", hint: "omniagent fork open try :3000",
			does: "timeout -s INT 3 omniagent fork open try :3000 || :", shows: "127.0.0.1",
		},
		"a fork of another workspace": {
			before: forked + "; mkdir ../other", fails: "cd ../other; omniagent fork run --name try -- true",
			hint: "omniagent fork run --name try --cwd ", shows: "made",
			does: `cd ../other; omniagent fork run --name try --cwd "$WORK" -- ls`,
		},
		"a damaged record of a fork": {
			before: forked + `; echo x >"$HOME/.local/state/omniagent/forks/try/fork.json"`,
			fails:  "omniagent fork diff try", hint: "omniagent fork delete try --confirm-destructive",
			does: "omniagent fork delete try --confirm-destructive", shows: "deleted",
		},
		"an agent over ACP at a terminal": {
			terminal: true, fails: "omniagent acp", hint: "use omniagent chat to talk to an agent yourself",
			does: "echo hello | omniagent chat --provider openai -m m --plain", shows: "hello",
		},
		"an undo that was made": {
			before: write + "; omniagent undo", fails: "omniagent undo TURN", hint: "omniagent undo TURN --take-old",
			does: "omniagent undo TURN --take-old || [ $? = 3 ]", shows: `"ok":`,
		},
		"a fork that is over": {
			before: forked, fails: "cd $(omniagent fork run --name try -- pwd) && omniagent fork run --name try -- sh -c 'omniagent fork apply try'",
			hint: "omniagent fork apply try", does: "omniagent fork apply try", shows: `"applied"`,
		},
		"an undo within a fork": {
			before: forked, fails: "omniagent fork run --name try -- omniagent undo",
			hint: "outside of it: omniagent fork delete try --confirm-destructive",
			does: "omniagent fork delete try --confirm-destructive", shows: `"deleted"`,
		},
		"a run in the home directory": {
			fails: `cd "$HOME" && omniagent run --rehearse -p x`, hint: "/project --rehearse -p 'WHAT TO DO'",
			does:  `mkdir -p "$HOME/project" && omniagent run --cwd "$HOME/project" --rehearse -p 'WHAT TO DO' || [ $? = 4 ]`,
			shows: "needs_input",
		},
		"a silent agent": {
			fails: "omniagent run --agent mute --yolo -p x --idle-timeout 2s", hint: " --idle-timeout 5m",
			does: "omniagent runs retry $(omniagent runs list --output id) --idle-timeout 5m", shows: "succeeded",
		},
		"a deletion of a run under way": {
			before: "omniagent run --agent mute --yolo -p x --detach", hint: "omniagent runs cancel ID",
			fails: "omniagent runs delete ID --confirm-destructive", does: "omniagent runs cancel ID", shows: "cancelled",
		},
		"a relative entry of PATH": {
			fails: `mkdir -p sub; PATH="sub:$PATH" omniagent agents allow fine`,
			hint:  "take it out of PATH, then run: omniagent agents allow fine", does: allow, shows: `"fine"`,
		},
		"a session of a newer version": {
			before: `mkdir -p "$HOME/.yume/sessions"; echo '{"n":1,"p":0,"k":"begin","t":"2026-01-31T12:00:00.000Z",` +
				`"d":{"v":99,"id":"sess-1a2b3c4d","provider":"openai","model":"m","cwd":"/x",` +
				`"created":"2026-01-31T12:00:00Z"}}' >"$HOME/.yume/sessions/sess-1a2b3c4d.jsonl"`,
			fails: "omniagent start --provider openai -m m --resume sess-1a2b3c4d -p x",
			hint:  "to look at it: omniagent session show sess-1a2b3c4d",
			does:  "omniagent session show sess-1a2b3c4d", shows: `"id":"sess-1a2b3c4d"`,
		},
		"an undo of a run of another directory": {
			before: runs, fails: "mkdir -p ../away; cd ../away; omniagent undo --run ID",
			hint: "omniagent runs show ID names its directory; then: omniagent undo --run ID --cwd DIR",
			does: `cd ../away; omniagent runs show ID | grep -q "\"$WORK\"" && ` +
				`omniagent undo --run ID --cwd "$WORK" --take-all`, shows: "made",
		},
		"an undo beside a run": {
			before: "git init -q; omniagent run --agent slow --yolo -p x --detach; until [ -e made ]; do sleep 0.1; done",
			fails:  "omniagent undo", hint: "wait for its end, or: omniagent runs cancel ID",
			does: "omniagent runs cancel ID && omniagent undo --take-all", shows: "made",
		},
		"an undo of a run that changed nothing": {
			before: `echo '[{"say":"ok"}]' >../s.json; omniagent run --rehearse --script ../s.json -p x`,
			fails:  "omniagent undo --run ID", hint: "omniagent runs show ID",
			does: "omniagent runs show ID", shows: `"succeeded"`,
		},
		"an undo of a run twice": {
			before: runs + "; omniagent undo --take-all", fails: "omniagent undo --run ID",
			hint: "omniagent redo takes that back", does: "omniagent redo", shows: "made",
		},
		"a session that is open": {
			before: open, fails: "omniagent start --provider openai -m m --resume s1 -p x",
			hint: "wait until it has ended, or fork the session: omniagent session fork s1",
			does: "omniagent session fork s1", shows: `"forked_from":"s1"`,
		},
		"a damaged snapshot": {
			before: write + `; for f in "$HOME"/.local/state/omniagent/undo/*/turns/*/before*; do echo x >"$f"; done`,
			fails:  "omniagent undo TURN", hint: "omniagent snapshots delete TURN --confirm-destructive",
			does: "omniagent snapshots delete TURN --confirm-destructive", shows: `"bytes_freed"`,
		},
		"an undo of a turn that died": {
			before: died, fails: "omniagent undo",
			hint: "omniagent undo TURN --dry-run shows what would be taken back and what kept; without --dry-run that is done",
			does: "omniagent undo TURN --dry-run && omniagent undo TURN --take-all", shows: "made",
		},
		"a run whose process died": {
			before: "omniagent run --agent slow --yolo -p x >/dev/null 2>&1 & until [ -e made ]; do sleep 0.1; done; kill -9 $!",
			fails:  "omniagent runs show ID; false", hint: "omniagent undo TURN --dry-run shows what it changed, and what others may have changed since; then: omniagent runs retry ID",
			does: "omniagent undo TURN --dry-run && omniagent runs retry ID", shows: `"succeeded"`,
		},
		"a turn that died and cannot be ended": {
			before: died + `; for t in "$HOME"/.local/state/omniagent/undo/*/turns/*; do mkdir -p "$t/after-0/x"; done`,
			fails:  "omniagent undo TURN", hint: "omniagent snapshots delete TURN --confirm-destructive forgets it",
			does: "omniagent snapshots delete TURN --confirm-destructive", shows: `"bytes_freed"`,
		},
		"a fork that cannot be entered": {
			before: "omniagent fork run --name try -- touch made",
			fails:  `unshare -U -r sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; omniagent fork run --name try -- true'`,
			hint:   "omniagent fork apply try brings home what is in it", does: "omniagent fork apply try", shows: "made",
		},
		"an undo that was interrupted": {
			before: cut, fails: "omniagent snapshots delete TURN --confirm-destructive",
			hint: "run omniagent undo in that directory to complete it", does: "omniagent undo", shows: "f1", again: true,
		},
		"a workspace that is gone": {
			before: "mkdir sub; cd sub; git init -q; omniagent run --agent fine --yolo --fork -p x; cd ..; rm -r sub",
			fails:  "omniagent runs retry ID", hint: "omniagent fork delete",
			does: "omniagent fork delete $(omniagent fork list --output id) --confirm-destructive", shows: `"deleted"`,
		},
		"a branch of what has no commit": {
			before: "omniagent run --agent fine --yolo --fork -p x", fails: "omniagent runs apply ID --as branch",
			hint: "omniagent fork apply", does: "omniagent fork apply $(omniagent fork list --output id)", shows: "made",
		},
		"a queued run that lost its process": {
			before: asks + `; sed -i 's/"needs_input"/"queued"/' "$HOME"/.local/state/omniagent/runs/run-*/run.json`,
			fails:  "omniagent runs watch ID", hint: "omniagent runs continue ID",
			does: "omniagent runs continue ID || [ $? = 4 ]", shows: `"needs_input"`,
		},
		"another agent's session over ACP": {
			before: "omniagent start --agent fine --session-id s1 -p x",
			fails:  load + `omniagent acp --agent native --provider openai -m m <in; false`, hint: "omniagent acp --agent fine",
			does:  load + "omniagent acp --agent fine <in >out & until grep -q user_message out; do sleep 0.1; done; cat out",
			shows: "user_message_chunk",
		},
		"an interrupted undo whose turn is damaged": {
			before: cut + `; for f in "$HOME"/.local/state/omniagent/undo/*/turns/"$(omniagent snapshots list --output id | ` +
				`tail -n 1)"/after*; do echo x >"$f"; done`,
			fails: "omniagent undo", hint: "takes back what it did",
			does: "omniagent undo $(omniagent snapshots list --output id | head -n 1) --take-all", shows: `"kind":"undo"`,
		},
		"a branch that is locked": {
			before: commit + "; omniagent fork run --name try -- sh -c 'echo x >made; git add made; " +
				"git -c user.name=a -c user.email=a@b commit -qm two'; touch .git/refs/heads/$(git branch --show-current).lock",
			fails: "omniagent fork apply try", hint: "omniagent fork apply try, again",
			does: "rm .git/refs/heads/*.lock; omniagent fork apply try", shows: `"resumed":true`,
		},
		"a disk that is full": {
			fails: `mkdir -p "$HOME/.local/state"; head -c 300000 /dev/zero >big; ` +
				`unshare -rm sh -c 'mount -t tmpfs -o size=128k none "$HOME/.local/state" && omniagent fork run --name try --tier copy -- true'`,
			hint: "or set XDG_STATE_HOME", shows: "big",
			does: `XDG_STATE_HOME="$HOME/other" omniagent fork run --name try -- ls`,
		},
		"a context that does not exist": {
			before: "mkdir -p .omniagent; echo 'current_context = \"none\"' >.omniagent/config.toml; omniagent trust",
			fails:  "omniagent agents list", hint: "omniagent config unset current_context removes it",
			does: "omniagent config unset current_context", shows: `"ok":true`, again: true,
		},
		"a patch of a run that goes on where another ended": {
			before: "omniagent run --agent fine --yolo --fork -p x && omniagent runs retry $(omniagent runs list --output id)" +
				" && omniagent runs delete $(omniagent runs list --output id | tail -n 1) --confirm-destructive",
			fails: "omniagent runs apply ID --as patch", hint: "omniagent runs apply ID",
			does: "omniagent runs apply ID", shows: "made",
		},
		"hooks of the repository": {
			before: "git init -q; mkdir -p .github/hooks; echo '{}' >.github/hooks/x.json; " +
				`printf '#!/bin/sh\necho 1.0.0\n' >"$BIN/copilot"; chmod +x "$BIN/copilot"; ` +
				"omniagent agents allow copilot; omniagent config set agents.allow copilot --global",
			fails: "omniagent run --agent copilot --transport acp --approval prompt -p x",
			hint:  "x.json, or --transport stream", does: "omniagent trust .github/hooks/x.json", shows: "x.json",
		},
		"a rehearsal with another agent": {
			fails: `printf '/agent native\n' | omniagent chat --agent fine --rehearse --plain; false`,
			hint:  "omniagent chat --rehearse --agent native rehearses with the other",
			does:  `echo hello | omniagent chat --rehearse --agent native --plain`, shows: "rehears",
		},
		"a directory that was removed": {
			before: "mkdir lost; cd lost; " + write, fails: "cd lost; rm -r ../lost; env -u PWD omniagent undo",
			hint: "mkdir -p DIRECTORY && omniagent undo --cwd DIRECTORY",
			does: "mkdir -p lost && omniagent undo --cwd lost || [ $? = 3 ]", shows: "made.txt",
		},
	}
}

// TestHintsTyped types a line that fails, and what its hint names, which helps.
func TestHintsTyped(t *testing.T) {
	hermetic.Long(t)
	for name, c := range typedHints() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t).model(`[{"say":"I heard hello."}]`)
			for name, does := range map[string]string{
				"fine": `echo x >made; echo "done $*"`, "mute": "sleep 8; echo done", "json": `echo '{"n":1}'`,
				"slow": "[ -e made ] && echo done && exit; echo x >made; exec sleep 60",
				"many": "for n in $(seq 3000); do echo x >f$n; done",
			} {
				p.agent(name, "cat >/dev/null; "+does)
			}
			if strings.Contains(c.before, "-p write") {
				p.model(`[{"write":{"path":"made.txt","content":"x"}},{"say":"I heard hello."}]`)
			}
			path := p.bin + ":" + filepath.Dir(program) + ":/usr/local/bin:/usr/bin:/bin"
			p.env = append(p.env, "BIN="+p.bin, "WORK="+p.work, "PATH="+path)
			p.configured("") // of the agents that are allowed
			if strings.Contains(c.before, "agents.allow") {
				p.put(filepath.Join(p.home, ".config/omniagent/config.toml"), "")
			}
			over := func() {}
			if c.before != "" {
				out, code, end := p.types(c.before, false)
				if over = end; code != 0 {
					t.Fatalf("what comes before fails with %d: %s", code, out)
				}
			}
			defer func() { over() }()
			turn := p.turn()
			named := func(line string) string {
				return strings.NewReplacer("ID", p.newest(), "TURN", turn).Replace(line)
			}
			fails, hint := named(c.fails), named(c.hint)
			out, code, _ := p.types(fails, c.terminal)
			if code == 0 || !strings.Contains(strings.ReplaceAll(out, `\"`, `"`), hint) {
				t.Fatalf("%q is not advised: %d %s", hint, code, out)
			}
			out, code, _ = p.types(named(c.does), false)
			if code != 0 || !strings.Contains(out, c.shows) {
				t.Errorf("what is advised fails: %d %s", code, out)
			}
			if c.again {
				if out, code, _ := p.types(fails, c.terminal); code != 0 {
					t.Errorf("it fails as before: %d %s", code, out)
				}
			}
		})
	}
}

// turn returns the id of the oldest snapshot, or the placeholder of the hint if no snapshot exists.
func (p *place) turn() string {
	out, _ := p.command("snapshots", "list", "--output", "id").Output()
	names := strings.Fields(string(out))
	return append([]string{"TURN"}, names...)[len(names)]
}

// types types a line and returns what both streams say, the exit code, and how to end what goes on in the background.
func (p *place) types(line string, terminal bool) (string, int, func()) {
	p.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir, cmd.Env = p.work, p.env
	var shown bytes.Buffer
	clock := time.AfterFunc(3*patience, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer clock.Stop()
	if terminal {
		device, err := pty.Start(cmd)
		if err != nil {
			p.t.Fatal(err)
		}
		defer device.Close()
		_, _ = shown.ReadFrom(device) // until it is closed
	} else {
		cmd.Stdout, cmd.Stderr = &shown, &shown
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	return shown.String(), cmd.ProcessState.ExitCode(), func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
