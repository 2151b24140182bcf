package walls

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// hole is one that a claim names, and what shows that it is real: lines that go through it, in the mode auto, and a
// look at what came of it.
type hole struct {
	name    string // a part of the phrase
	args    []string
	lines   []string
	prepare func(t *testing.T, g *ground)
	open    func(t *testing.T, g *ground, o outcome) bool
}

// holes are all that a claim may name.
//
// Long because it is one table.
func holes() []hole {
	mode := func(path string) os.FileMode {
		info, err := os.Lstat(path)
		if err != nil {
			return 0
		}
		return info.Mode()
	}
	shows := func(text string) func(*testing.T, *ground, outcome) bool {
		return func(_ *testing.T, _ *ground, o outcome) bool {
			return slices.ContainsFunc(o.results, func(r toolResult) bool { return strings.Contains(r.Content, text) })
		}
	}
	marked := func(_ *testing.T, g *ground, _ outcome) bool { return exists(g.work + "/marks/hole") }
	return []hole{
		{
			name: "chmod, chown and utimes of files outside", lines: []string{"d={out}; chmod 777 $d/file"},
			open: func(_ *testing.T, g *ground, _ outcome) bool { return mode(g.out+"/file").Perm() == 0o777 },
		},
		{
			name:  "mode, owner and times of the configuration",
			lines: []string{`python3 -c 'import os; os.chmod(".g" + "it/config", 0o604)'`},
			open:  func(_ *testing.T, g *ground, _ outcome) bool { return mode(g.work+"/.git/config").Perm() == 0o604 },
		},
		{
			name:  "setting extended attributes",
			lines: []string{`python3 -c 'import os; os.setxattr("{out}/file", "user.omniagent", b"x")'`},
			open: func(t *testing.T, g *ground, o outcome) bool {
				data := make([]byte, 8)
				if n, err := syscall.Getxattr(g.out+"/file", "user.omniagent", data); err != nil || n != 1 {
					skipWithoutAttributes(t, g)
					return false
				}
				return true
			},
		},
		{
			name:  "writes to protected names inside the workspace",
			lines: []string{`python3 -c 'open(".g" + "it/hooks/post-checkout", "w").write("evil")'`},
			open: func(_ *testing.T, g *ground, _ outcome) bool {
				return exists(g.work + "/.git/hooks/post-checkout")
			},
		},
		{
			name: "names, sizes and times of hidden files", open: shows("id_ed25519"),
			lines: []string{`python3 -c 'import os; print(os.listdir("{home}/.s" + "sh"))'`},
		},
		{
			name: "seeing which processes run outside", lines: []string{"ls /proc; ls -d /proc/{pid}"},
			open: func(_ *testing.T, _ *ground, o outcome) bool {
				return strings.Contains(o.results[0].Content, fmt.Sprintf("/proc/%d\n", os.Getpid()))
			},
		},
		{
			name: "truncating files outside", lines: []string{"python3 -c 'import os; os.truncate(\"{out}/file\", 0)'"},
			open: func(_ *testing.T, g *ground, _ outcome) bool {
				info, err := os.Stat(g.out + "/file")
				return err == nil && info.Size() == 0
			},
		},
		{name: "ioctl on devices", lines: []string{`python3 -c '
import errno, fcntl, os
for name in ("kmsg", "rtc0", "fuse", "vsock"):
    try: fcntl.ioctl(os.open("/dev/" + name, os.O_RDONLY), 0xdead)
    except OSError as e:
        print(name, e)
        if e.errno in (errno.ENOTTY, errno.EINVAL): open("{m}", "w")
'`}, open: marked},
		{
			name:  "signals to processes of the user outside",
			lines: []string{"python3 -c 'import os; os.kill({pid}, 0)' && touch {m}"}, open: marked,
		},
		{
			name: "hidden files that have a second name", lines: []string{"cat second"}, open: shows(canary()),
			prepare: func(t *testing.T, g *ground) { must(t, os.Link(g.home+"/.ssh/id_ed25519", g.work+"/second")) },
		},
		{
			name: "repositories that a command makes elsewhere in the workspace", open: func(t *testing.T, g *ground,
				_ outcome,
			) bool {
				// a person does
				cmd := exec.Command("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty",
					"-m", "x")
				cmd.Dir, cmd.Env = g.work+"/sub/made", append(g.env, "GIT_CONFIG_NOSYSTEM=1")
				_ = cmd.Run()
				return exists(g.work + "/marks/hole")
			},
			lines: []string{
				`mkdir -p sub/made && cd sub/made && git init -q . && python3 -c '
import os
name = ".g" + "it/hooks/pre-commit"
open(name, "w").write("#!/bin/sh\ntouch {m}\n")
os.chmod(name, 0o755)
'`,
			},
		},
		{
			name: "settings of tools that no list has", lines: []string{"touch newtool.toml"},
			open: func(_ *testing.T, g *ground, _ outcome) bool { return exists(g.work + "/newtool.toml") },
		},
		{
			name: "settings of editors and agents deeper", open: func(_ *testing.T, g *ground, _ outcome) bool {
				return exists(g.work + "/sub/lib/.vscode/tasks.json")
			},
			lines: []string{
				`mkdir -p sub/lib && cd sub/lib && python3 -c '
import os
name = ".vs" + "code"
os.mkdir(name)
open(name + "/tasks.json", "w")
'`,
			},
		},
		{
			name: "terminals of the user outside", lines: []string{"timeout 10 head -n 1 < $(cat terminal)"},
			open: shows("typed by a person"), prepare: typing,
		},
		{
			name: "shared memory, queues and semaphores", lines: []string{`python3 -c '
import ctypes
l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p
at = l.shmat(int(open("memory").read()), None, 0)
if at not in (None, 2**64-1): print(ctypes.string_at(at))
'`}, open: shows("shared by a person"), prepare: sharing,
		},
		{
			name: "the processors on which processes of the user outside run", open: marked,
			lines: []string{
				"python3 -c 'import os; os.sched_setaffinity({pid}, os.sched_getaffinity({pid}))' && touch {m}",
			},
		},
		{
			name: "what git's index names", lines: []string{`python3 -c '
import hashlib, os, struct, subprocess
git = ".g" + "it"
s = subprocess.run(["git", "hash-object", "-w", "--stdin"], input=b"x", stdout=subprocess.PIPE).stdout.strip().decode()
p = (git + "/hooks/made").encode()
e = struct.pack(">10I", 0, 0, 0, 0, 0, 0, 0o100755, 0, 0, 0) + bytes.fromhex(s) + struct.pack(">H", len(p)) + p
o = struct.pack(">4sII", b"DIRC", 2, 1) + e + bytes(8 - len(e) % 8)
open(git + "/new", "wb").write(o + hashlib.sha1(o).digest())
os.rename(git + "/new", git + "/index")
'`}, open: func(_ *testing.T, g *ground, _ outcome) bool {
				cmd := exec.Command("git", "restore", ".") // a person does
				cmd.Dir, cmd.Env = g.work, append(g.env, "GIT_CONFIG_NOSYSTEM=1")
				_ = cmd.Run()
				return exists(g.work + "/.git/hooks/made")
			},
		},
		{
			name: "programs with the set-user-id bit", lines: []string{"cp /bin/true own; m=u+s; chmod $m own"},
			open: func(_ *testing.T, g *ground, _ outcome) bool {
				info, err := os.Stat(g.work + "/own")
				return err == nil && info.Mode()&os.ModeSetuid != 0 && info.Sys().(*syscall.Stat_t).Uid == 0
			},
		},
		{name: "the number of processes", lines: []string{manyThreads(4200)}, open: marked},
		{
			// Written, by names, reserved without a write, and held by a descriptor alone: a limit that counts one of
			// them does not see the others.
			name: "the space and the inodes of the disk", lines: []string{
				"head -c 64M /dev/zero > big && head -c 64M /dev/zero > $TMPDIR/big && touch {m}-written",
				"mkdir i && (cd i && seq 3000 | xargs touch) && touch {m}-names",
				"fallocate -l 64M kept && [ $(stat -c %b kept) -gt 100000 ] && touch {m}-reserved",
				"exec 5> gone; rm gone; head -c 64M /dev/zero >&5 && touch {m}-nameless",
			},
			open: func(_ *testing.T, g *ground, _ outcome) bool {
				ways, _ := filepath.Glob(g.work + "/marks/hole-*")
				return len(ways) == 4
			},
		},
		{
			name: "the memory of commands",
			lines: []string{
				"python3 -c 'b = bytearray(1 << 28); print(len(b))' && [ $(ulimit -v) = unlimited ] && touch {m}",
			}, open: marked,
		},
		{
			name: "what listens on this machine, and everything that the network reaches", args: []string{
				"--network",
				"on",
			}, prepare: func(t *testing.T, g *ground) { g.listen(t) },
			lines: []string{"d=/dev; exec 3<>$d/tcp/127.0.0.1/{port}; cat <&3"},
			open:  shows(strings.TrimSpace(worldText)),
		},
		{
			name: "abstract sockets of processes outside", args: []string{
				"--network",
				"on",
			}, prepare: func(t *testing.T, g *ground) { g.listen(t) },
			lines: []string{
				`python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect("\0{abstract}")' && touch {m}`,
			}, open: marked,
		},
		{
			name: "everything: commands do what the user can do", args: []string{
				"--sandbox",
				"off",
			}, lines: []string{`python3 -c 'open("{out}/new", "w"); print(open("{home}/.s" + "sh/id_ed25519").read())'`},
			open: func(_ *testing.T, g *ground, _ outcome) bool { return exists(g.out + "/new") },
		},
	}
}

// typing is a person at a terminal, whose name lies in the workspace.
func typing(t *testing.T, g *ground) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	must(t, err)
	name := fmt.Sprintf("/dev/pts/%d", number)
	slave, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOCTTY, 0)
	must(t, err)
	t.Cleanup(func() { slave.Close() })
	_, err = master.WriteString("typed by a person\n")
	must(t, err)
	g.write(t, g.work+"/terminal", name)
}

// sharing is memory of a program outside, whose number lies in the workspace.
func sharing(t *testing.T, g *ground) {
	t.Helper()
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	must(t, err)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	memory, err := unix.SysvShmAttach(id, 0, 0)
	must(t, err)
	copy(memory, "shared by a person\x00")
	must(t, unix.SysvShmDetach(memory))
	g.write(t, g.work+"/memory", fmt.Sprint(id))
}

// manyThreads starts so many that the limit of processes would refuse some.
func manyThreads(n int) string {
	return fmt.Sprintf(`python3 -c 'import _thread, os, threading
threading.stack_size(32768)
over = threading.Lock()
over.acquire()
for i in range(%d): _thread.start_new_thread(over.acquire, ())
os._exit(0)' && touch {m}`, n)
}

// skipWithoutAttributes skips where the file system has none.
func skipWithoutAttributes(t *testing.T, g *ground) {
	t.Helper()
	if err := syscall.Setxattr(g.out+"/file", "user.omniagent", []byte("x"), 0); err != nil {
		t.Skipf("this file system keeps no extended attributes: %v", err)
	}
}

// TestHoles: each hole in a claim exists, and there are no others. So the list is neither too short nor too long.
func TestHoles(t *testing.T) {
	t.Parallel()
	for _, place := range []struct {
		label string
		where tier
		args  []string
	}{
		{"namespaces", namespaces(), nil},
		{"landlock", landlock(), nil},
		{"masked", masked(), nil},
		{"network", namespaces(), []string{"--network", "on"}},
		{"landlock network", landlock(), []string{"--network", "on"}},
		{"off", tier{name: "none"}, []string{"--sandbox", "off"}},
	} {
		t.Run(place.label, func(t *testing.T) {
			t.Parallel()
			if place.label != "off" {
				needs(t, place.where)
			}
			first := newGround(t)
			told := toldBy(t, first.turn(t, place.where, nil, place.args...))
			if told.Name != place.where.name {
				t.Fatalf("the walls %s stand: %+v", told.Name, told)
			}
			claimed := slices.Clone(told.Holes)
			for _, h := range holes() {
				is := slices.IndexFunc(claimed, func(text string) bool { return strings.Contains(text, h.name) })
				if is >= 0 {
					claimed = slices.Delete(claimed, is, is+1)
				}
				if h.args != nil && !slices.Equal(h.args, place.args) || place.label == "off" && is < 0 ||
					place.args != nil && place.label != "off" && h.args == nil {
					continue // another place shows it
				}
				t.Run(h.name, func(t *testing.T) {
					t.Parallel()
					h.try(t, place.where, place.args, is >= 0)
				})
			}
			if len(claimed) > 0 {
				t.Errorf("the claim has holes that nothing shows: %q", claimed)
			}
		})
	}
}

func (h hole) try(t *testing.T, where tier, args []string, claimed bool) {
	if strings.Contains(strings.Join(h.lines, ""), "python3") {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("there is no python3")
		}
	}
	if h.name == "the number of processes" && !claimed && os.Geteuid() != 0 {
		t.Skip("the limit is for all processes of the user, so it is not filled here")
	}
	g := newGround(t)
	if h.prepare != nil {
		h.prepare(t, g)
	}
	var steps []string
	for _, line := range h.lines {
		steps = append(steps,
			bash(strings.ReplaceAll(g.fill(line, g.work+"/marks/hole"), "{pid}", fmt.Sprint(os.Getpid()))))
	}
	o := g.turn(t, where, steps, append([]string{"--permission-mode", "auto"}, args...)...)
	if len(o.results) != len(steps) ||
		slices.ContainsFunc(o.results,
			func(r toolResult) bool { return strings.Contains(r.Content, "It did not run") }) {
		t.Fatalf("it was not tried: %s", o.out)
	}
	if open := h.open(t, g, o); open != claimed {
		t.Errorf("the claim says open %v, and it is open %v: %s", claimed, open, o.out)
	}
}

func toldBy(t *testing.T, o outcome) claim {
	t.Helper()
	said, ok := o.init["sandbox"].(map[string]any)
	if !ok {
		t.Fatalf("init says nothing of walls: %s\n%s", o.out, o.stderr)
	}
	c := claim{Name: said["name"].(string), Network: said["network"].(string)}
	for _, text := range said["holes"].([]any) {
		c.Holes = append(c.Holes, text.(string))
	}
	return c
}

// TestAllSayTheSame: init, the record of the session, the report of a call, the explanation and the doctor, each in its
// data and in its meta, name the same walls and the same holes.
func TestAllSayTheSame(t *testing.T) {
	t.Parallel()
	for _, where := range []tier{namespaces(), landlock(), masked()} {
		t.Run(strings.Trim(where.name+" "+where.weaker, " "), func(t *testing.T) {
			t.Parallel()
			needs(t, where)
			g := newGround(t)
			want := toldBy(t, g.turn(t, where, nil, "--session-id", "same"))
			if want.Name != where.name || len(want.Holes) == 0 {
				t.Errorf("%+v", want)
			}
			compare := func(who string, got claim) {
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s says\n%+v\ninit says\n%+v", who, got, want)
				}
			}
			var explained struct{ Walls claim }
			compare("the meta of sandbox explain", g.answer(t, where, &explained, "sandbox", "explain", "."))
			compare("sandbox explain", explained.Walls)
			var kept struct{ Walls claim }
			compare("the meta of session show", g.answer(t, where, &kept, "session", "show", "same"))
			compare("session show", kept.Walls)
			var checked struct {
				Sandbox struct {
					Tier  string
					Holes []string
				}
			}
			compare("the meta of doctor", g.answer(t, where, &checked, "doctor"))
			compare("doctor", claim{checked.Sandbox.Tier, want.Network, checked.Sandbox.Holes})
			compare("--report", g.reported(t, where))
		})
	}
}

// reported is what the report of a call says that goes straight to the agent.
func (g *ground) reported(t *testing.T, where tier) claim {
	t.Helper()
	g.write(t, g.work+"/script.json", `[{"say":"hello"}]`)
	path := filepath.Join(g.base, "report.json")
	out, err := g.command(where, "--agent", "native", "-p", "go", "--rehearse="+g.work+"/script.json", "--report",
		path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(path)
	must(t, err)
	var report struct{ Sandbox claim }
	must(t, json.Unmarshal(data, &report))
	return report.Sandbox
}
