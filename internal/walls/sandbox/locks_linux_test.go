package sandbox

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// catcher looks out for files that appear in a git directory, and tries to have them open, or a second name of them,
// before they are the configuration. At the end it writes what it has, and prints how many it has seen.
func catcher(dir string) error {
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_ATTRIB); err != nil {
		return err
	}
	var caught []*os.File
	seen, block := 0, make([]byte, 64<<10)
	for n := 0; !exists(dir + "/over"); n++ {
		size, err := unix.Read(watch, block)
		if err != nil || size <= 0 {
			continue
		}
		for at := 0; at < size; {
			length := int(binary.NativeEndian.Uint32(block[at+12:]))
			name := string(bytes.TrimRight(block[at+16:at+16+length], "\x00"))
			at += 16 + length
			if name == "over" || strings.HasPrefix(name, "twin") {
				continue
			}
			seen++
			path := filepath.Join(dir, name)
			if file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				caught = append(caught, file)
			}
			twin := fmt.Sprintf("%s/twin%d", dir, len(caught))
			if os.Link(path, twin) == nil {
				if file, err := os.OpenFile(twin, os.O_WRONLY|os.O_APPEND, 0); err == nil {
					caught = append(caught, file)
				}
			}
			_ = os.Rename(dir+"/config.mine", path)
		}
	}
	for _, file := range caught {
		_, _ = file.WriteString("[core]\n\tfsmonitor = evil\n")
	}
	fmt.Println(seen)
	return nil
}

// TestConfigurationIsNotCaught: while one command changes a configuration as it may, another one, behind the same walls
// or others, never has open what becomes the configuration.
func TestConfigurationIsNotCaught(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		must(t, os.WriteFile(g.root+"/.git/config.mine", []byte("[core]\n\tfsmonitor = evil\n"), 0o600))
		first, second := g.walls(t, tier), g.walls(t, tier)
		caught := make(chan result, 1)
		go func() { caught <- g.run(t, second, g.attacker, "catches", g.root+"/.git") }()
		r := g.sh(t, first, "sleep 0.3; for i in $(seq 60); do git config branch.b$i.merge x || exit 1; done")
		must(t, os.WriteFile(g.root+"/.git/over", nil, 0o600))
		c := <-caught
		var seen int
		if _, err := fmt.Sscan(c.out, &seen); err != nil || seen < 60 || r.ending.ExitCode != 0 {
			t.Errorf("too little was tried: %+v %+v", c, r)
		}
		text, err := os.ReadFile(g.root + "/.git/config")
		if must(t, err); strings.Contains(string(text), "evil") || !strings.Contains(string(text), `"b60"`) {
			t.Errorf("%s", text)
		}
		left, _ := filepath.Glob(g.root + "/.git/" + copyPrefix + "*")
		if len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
}

// TestLockOfAPerson: while a person's git changes the configuration, no command has its lock open, moves it or puts
// another file in its place.
func TestLockOfAPerson(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		g.repository(t)
		w := g.walls(t, tier)
		lock := g.root + "/.git/config.lock"
		for _, line := range []string{
			"echo evil >> .git/config.lock", "echo evil > .git/config.lock", "truncate -s 0 .git/config.lock",
			"ln .git/config.lock twin && echo evil >> twin", "exec 7<.git/config.lock; echo evil >> /proc/self/fd/7",
			"mv .git/config.lock away; cp .git/config x; echo evil >> x; mv x .git/config.lock",
			"rm -f .git/config.lock; echo evil > .git/config.lock", "echo evil > x; mv -f x .git/config.lock",
			"echo evil > x; ln -f x .git/config.lock", "echo evil > x; ln -sf ../x .git/config.lock",
			"mv .git/config.lock .git/config", "cd .git; echo evil >> CONFIG.LOCK; rm -f CONFIG.lock",
			"python3 -c 'import os, ctypes; open(\"x\", \"w\").write(\"evil\"); " +
				"ctypes.CDLL(None).renameat2(-100, b\"x\", -100, b\".git/config.lock\", 2)'",
		} {
			for _, content := range []string{
				"[core]\n\tbare = false\n",
				"[core]\n\tbare = false\n[alias]\n\tx = !mine\n",
			} {
				must(t, os.WriteFile(lock, []byte(content), 0o600))
				config, err := os.ReadFile(g.root + "/.git/config")
				must(t, err)
				r := g.sh(t, w, line)
				text, err := os.ReadFile(lock)
				if err != nil || string(text) != content {
					t.Errorf("%s: %q %v\n%s", line, text, err, r.out)
				}
				if after, err := os.ReadFile(g.root + "/.git/config"); err != nil || !bytes.Equal(after, config) {
					t.Errorf("%s: the configuration is %q, %v", line, after, err)
				}
			}
		}
		must(t, os.Remove(lock))
		r := g.sh(t, w, "git config branch.x.merge y && ! git config core.fsmonitor evil && test ! -e .git/config.lock")
		if r.ending.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
		out, err := exec.Command("git", "-C", g.root, "config", "user.name", "b").CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// TestSupervisorIsBare: what acts for a command has no more rights than it.
func TestSupervisorIsBare(t *testing.T) {
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		must(t, os.WriteFile(g.root+"/shut", nil, 0o400))
		must(t, os.Mkdir(g.root+"/closed", 0o500))
		r := g.sh(t, g.walls(t, tier), `for t in /proc/$PPID/task/*; do grep -h CapEff $t/status; done | grep -c 'CapEff:.0*$'
			echo x > shut || mkdir closed/x || echo refused; chmod 700 shut; echo x > shut && echo mine`)
		var bare int
		_, err := fmt.Sscan(r.out, &bare)
		if err != nil || bare < supervisors()+1 || !strings.Contains(r.out, "refused") ||
			!strings.HasSuffix(r.out, "mine\n") {
			t.Errorf("%+v", r)
		}
	})
}

// TestPipesWithoutAnOther: who waits for the other end of a pipe can be killed and gets signals, and leaves nothing
// open.
func TestPipesWithoutAnOther(t *testing.T) {
	hermetic.Long(t)
	inEachTier(t, func(t *testing.T, tier Tier) {
		g := newGround(t)
		r := g.sh(t, g.walls(t, tier), `mkfifo p q r; timeout 0.2 bash -c 'echo x > p'
			(sleep 0.2; echo late > p) & cat p; wait
			timeout 0.2 cat q; echo $?
			for i in $(seq 30); do echo line > r & all="$all $!"; done; exec 5<r; wait $all; head -30 <&5 | uniq -c
			timeout 5 python3 -c '
import os, signal
class A(Exception): pass
def rings(*a): raise A
signal.signal(signal.SIGALRM, rings)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try: os.open("q", os.O_WRONLY)
except A: print("rang")'`)
		if !strings.HasPrefix(r.out, "late\n124\n") || !strings.HasSuffix(r.out, "30 line\nrang\n") ||
			r.ending.ExitCode != 0 {
			t.Errorf("%+v", r)
		}
	})
}
