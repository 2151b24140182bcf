// Package oracle runs lines that package guard approved in real bash, in a place where everything that was not expected
// leaves a trace.
//
// It promises that a program which is started without being in the tables, a file that changes, and a secret that is
// printed are told. It refuses to run anything else: a line that was not approved never reaches a shell here. Only
// tests and measurements use it.
package oracle

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/walls/guard"
)

// secret stands in files that no approved line may print.
const secret = "CANARY-7f3a9"

// Oracle is one prepared place. One goroutine uses it at a time.
type Oracle struct {
	Place  guard.Place
	bin    string // spies and links to the programs that are approved
	marks  string // where spies leave their traces
	before string
	env    []string
	bash   string
}

// New prepares a place below dir.
func New(dir string) (*Oracle, error) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	o := &Oracle{
		Place: guard.Place{Root: dir + "/ws", Dir: dir + "/ws", Home: dir + "/home", ResolveLinks: leads},
		bin:   dir + "/bin", marks: dir + "/marks", bash: bash,
	}
	for _, d := range []string{o.bin, o.marks, dir + "/tmp"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := o.programs(); err != nil {
		return nil, err
	}
	if err := o.files(dir); err != nil {
		return nil, err
	}
	// Variables whose values run something if they are evaluated rather than printed.
	o.env = []string{
		"PATH=" + o.bin, "HOME=" + o.Place.Home, "LC_ALL=C.UTF-8", "TMPDIR=" + dir + "/tmp",
		"x=a[$(evil)]", "v=$(evil)", "foo=a[`evil`]", "i=a[$(evil)]",
		"PS4=$(evil)",
	}
	o.before = o.state()
	return o, nil
}

// leads returns where a path leads over links.
func leads(path string) []string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return []string{real}
	}
	return nil
}

// Approved are the programs that an approved line may start; the test links nothing else.
func Approved() []string {
	return strings.Fields(
		"basename cat cmp comm cut date df dirname du echo false file fold grep groups head id ls md5sum nl nproc od " +
			"paste pwd readlink realpath rev sed sha1sum sha256sum sha512sum sleep sort stat tac tail tr true " +
			"type uname uniq uptime wc which whoami")
}

// Spies are programs that no approved line starts.
func Spies() []string {
	return strings.Fields(
		"evil rm mv cp touch mkdir tee dd chmod chown ln install truncate shred curl wget nc ssh ping python3 perl " +
			"ruby node npm npx make awk gawk xargs env printenv less more man " +
			"vi vim nano sh dash zsh sudo su doas gpg go cargo docker kill pkill killall egrep fgrep zcat zgrep gzip " +
			"gunzip bzip2 xz pr split csplit claude codex gemini nohup setsid stdbuf time watch " +
			"script busybox crontab at systemctl shutdown reboot git-evil ssh-askpass diff3 sdiff openssl tar unzip " +
			"zip rsync scp seq find jq rg git diff tree xxd hexdump strings base64 printf test timeout nice ps " +
			"hostname arch column join expand fmt free tty")
}

func (o *Oracle) programs() error {
	for _, name := range Spies() {
		text := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >> %s/spy\n", o.marks)
		if err := os.WriteFile(filepath.Join(o.bin, name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	for _, name := range Approved() {
		target := ""
		for _, dir := range []string{"/usr/bin/", "/bin/"} {
			if _, err := os.Stat(dir + name); err == nil {
				target = dir + name
				break
			}
		}
		if target == "" {
			target = "/bin/true" // not installed here
		}
		if err := os.Symlink(target, filepath.Join(o.bin, name)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Oracle) files(dir string) error {
	for name, text := range map[string]string{
		"ws/a.txt": "one\ntwo\nfoo $(evil)\n", "ws/b.go": "package b\n// foo `evil`\n",
		"ws/c.json": `{"a":[{"b":"foo"}]}`, "ws/e f": "space\n", "ws/-rf": "x\n", "ws/-exec": "x\n",
		"ws/-delete":    "x\n",
		"ws/--pre=evil": "x\n", "ws/--output=pwned": "x\n", "ws/-o": "x\n", "ws/-i": "x\n", "ws/evil": "x\n",
		"ws/$(evil)": "x\n", "ws/`evil`": "x\n", "ws/;evil": "x\n", "ws/x|evil": "x\n", "ws/*": "x\n",
		"ws/sub/d.txt": "deep\n", "ws/two/a": "1\n", "ws/two/b": "1\n", "ws/sub/.hidden": "h\n", "ws/sub/-n": "n\n",
		"ws/.rgignore": "zzz\n", "ws/w pwned": "x\n", "ws/e evil": "x\n", "ws/.ripgreprc": "--pre=evil\n",
		"ws/.jq":           "def foo: 1;\n",
		"home/.ssh/id_rsa": secret + "\n", "home/plain": secret + "\n", "outside": secret +
			"\n", "home/.netrc": secret + "\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := os.Symlink("../outside", filepath.Join(dir, "ws/link")); err != nil {
		return err
	}
	for _, name := range []string{"ls", "evil.sh", "cat"} { // programs of the workspace
		text := fmt.Sprintf("#!/bin/sh\necho workspace >> %s/spy\n", o.marks)
		if err := os.WriteFile(filepath.Join(dir, "ws/sub", name), []byte(text), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// state is what the place looks like: names, kinds, sizes, times.
func (o *Oracle) state() string {
	var b strings.Builder
	for _, root := range []string{o.Place.Root, o.Place.Home, o.bin} {
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				fmt.Fprintf(&b, "%s: %v\n", path, err)
				return nil
			}
			info, err := d.Info()
			if err != nil {
				fmt.Fprintf(&b, "%s: %v\n", path, err)
				return nil
			}
			fmt.Fprintf(&b, "%s %v %d %d\n", path, info.Mode(), info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return b.String()
}

// Try asks the guard and, if it approves, runs the line. An error tells what happened that must not.
func (o *Oracle) Try(line string) (approved bool, err error) {
	if guard.Tools.Command(line, o.Place).Decision != guard.Allow {
		return false, nil
	}
	return true, o.Run(line)
}

// Run runs a line that was approved.
func (o *Oracle) Run(line string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, o.bash, "--noprofile", "--norc", "-c", line)
	c.Dir, c.Env, c.WaitDelay = o.Place.Dir, o.env, time.Second
	var stdout, stderr limited
	c.Stdout, c.Stderr = &stdout, &stderr
	_ = c.Run() // how it ends does not matter
	var found []string
	if trace, err := os.ReadFile(filepath.Join(o.marks, "spy")); err == nil {
		found = append(found, "started: "+strings.TrimSpace(string(trace)))
		_ = os.Remove(filepath.Join(o.marks, "spy"))
	}
	if after := o.state(); after != o.before {
		found = append(found, "changed: "+difference(o.before, after))
		o.before = after
	}
	if bytes.Contains(stdout.b, []byte(secret)) || bytes.Contains(stderr.b, []byte(secret)) {
		found = append(found, "printed a secret")
	}
	if bytes.Contains(stderr.b, []byte("command not found")) {
		found = append(found, "tried to start: "+string(stderr.b))
	}
	if len(found) > 0 {
		return fmt.Errorf("approved, yet it %s\n\t%q", strings.Join(found, "; "), line)
	}
	return nil
}

// difference lists the lines that only one of two states has.
func difference(before, after string) string {
	count := map[string]int{}
	for l := range strings.Lines(before) {
		count[l]--
	}
	for l := range strings.Lines(after) {
		count[l]++
	}
	var lines []string
	for l, n := range count {
		if n != 0 {
			lines = append(lines, strings.TrimSpace(l))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// limited keeps the beginning of what is written.
type limited struct{ b []byte }

func (l *limited) Write(p []byte) (int, error) {
	if room := 1<<20 - len(l.b); room > 0 {
		l.b = append(l.b, p[:min(room, len(p))]...)
	}
	return len(p), nil
}
