//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRealPrograms runs what people run, behind the filter: it must not be seen but where it refuses.
func TestRealPrograms(t *testing.T) {
	if role := os.Getenv(roleVariable); role != "" {
		args := roleArgs()
		err := errors.Join(lower(role), install(systemCalls(Landlock, strings.HasSuffix(role, "+inet"), holdsNothing)))
		if err == nil {
			err = syscall.Exec(args[0], args, os.Environ())
		}
		leave(err)
	}
	for name, p := range realPrograms() {
		for _, user := range users() {
			if user == "root" {
				continue // a program behind walls has no capability
			}
			t.Run(name+" as "+user, func(t *testing.T) {
				t.Parallel()
				dir := ordinaryDir(t)
				for _, tool := range append(p.needs, "sh") {
					if path := findFor(user, tool); path == "" {
						t.Skipf("%s is not installed for %s", tool, user)
					}
				}
				if p.cache && user == "nobody" {
					t.Skip("it would build the standard library for a user without a cache")
				}
				if p.needs[0] == "cargo" { // it may be rustup, which then looks for one in the home directory
					version := exec.Command("cargo", "--version")
					version.Env = realEnviron(dir)
					if out, err := version.CombinedOutput(); err != nil {
						first, _, _ := strings.Cut(string(out), "\n")
						t.Skipf("cargo does not run without walls either: %s", first)
					}
				}
				role := user
				if p.inet {
					role += "+inet"
				}
				out, err := realRun(t, dir, role, p)
				if err != nil || !strings.HasSuffix(strings.TrimSpace(out), p.want) {
					t.Errorf("%v, want %q at the end of\n%s", err, p.want, out)
				}
			})
		}
	}
}

// realEnviron is the environment of a program whose home is dir.
func realEnviron(dir string) []string {
	env := []string{
		"PATH=" + systemPath() + ":" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GOTOOLCHAIN=local", "GOFLAGS=", "GOPROXY=off",
	}
	for _, kept := range []string{"RUSTUP_HOME", "CARGO_HOME", "GOCACHE"} {
		if value := home(kept); value != "" {
			env = append(env, kept+"="+value)
		}
	}
	return env
}

func realRun(t *testing.T, dir, role string, p realProgram) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestRealPrograms$", "--", "/bin/sh", "-euc", p.script)
	cmd.Dir = dir
	cmd.Env = append(realEnviron(dir), roleVariable+"="+role)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// home is where a tool keeps what it would otherwise make again in the home of the test.
func home(variable string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	cache, _ := os.UserCacheDir()
	own, _ := os.UserHomeDir()
	path := map[string]string{
		"RUSTUP_HOME": filepath.Join(own, ".rustup"),
		"GOCACHE":     filepath.Join(cache, "go-build"),
	}[variable]
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}

func systemPath() string { return "/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin" }

// findFor finds a tool that the user may run: nobody cannot enter the home of root.
func findFor(user, tool string) string {
	places := systemPath()
	if user != "nobody" {
		places += ":" + os.Getenv("PATH")
	}
	for _, dir := range filepath.SplitList(places) {
		if info, err := os.Stat(filepath.Join(dir, tool)); err == nil && info.Mode()&0o111 != 0 {
			return filepath.Join(dir, tool)
		}
	}
	return ""
}

// ordinaryDir is a directory of any user's.
func ordinaryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "filter")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

type realProgram struct {
	needs  []string
	script string
	want   string
	inet   bool
	cache  bool // nothing without the cache of the user who runs the test
}

func realPrograms() map[string]realProgram {
	return map[string]realProgram{
		"bash": {needs: []string{"bash"}, want: "6 fine", script: `cat > s <<'END'
set -euo pipefail
for i in 1 2 3; do (echo $i > file$i) & done; wait
trap 'echo sig > sig' USR1; kill -USR1 $$
coproc C { cat; }; echo through >&"${C[1]}"; read -r line <&"${C[0]}"; test "$line" = through
exec {C[1]}>&-
diff <(sort file*) <(printf '1\n2\n3\n') > /dev/null
test "$(cat sig)" = sig
sum=0; while read -r n; do sum=$((sum + n)); done < <(cat file1 file2 file3)
ulimit -n > /dev/null; umask 077; mkfifo p; (echo x > p) & read -r x < p; test $x = x
echo $sum fine
END
bash s`},
		"git": {needs: []string{"git"}, want: "+two", script: `git init -q -b main r && cd r && git config user.name a && git config user.email a@b
echo one > f && git add f && git commit -qm first && git log --oneline | cat > /dev/null && git gc -q && git status --short
git worktree add -q ../w && git -C ../w log -1 --format=%s > /dev/null && echo two >> f && git diff | tail -1`},
		"node": {needs: []string{"node"}, want: "worker 42 child", script: `cat > m.js <<'END'
const { Worker } = require('worker_threads'), cp = require('child_process'), fs = require('fs')
fs.promises.writeFile('x', 'y').then(() => fs.watch('.').close())
const w = new Worker('require("worker_threads").parentPort.postMessage(42)', { eval: true })
const child = cp.fork('c.js')
w.on('message', n => child.on('message', m => { console.log('worker', n, m); process.exit() }))
END
echo 'process.on("message", () => {}); setTimeout(() => process.send("child"), 200)' > c.js
test "$(node -e 'console.log(require("child_process").execFileSync("echo", ["sync"]).toString())' | head -1)" = sync
node m.js`},
		"python": {needs: []string{"python3"}, want: "[1, 4, 9] ok", script: `cat > m.py <<'END'
import asyncio, multiprocessing, os, socket, subprocess, tempfile, threading, time
def f(x): return x * x
if __name__ == '__main__':
    a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'
    t = threading.Thread(target=time.sleep, args=(0.01,)); t.start(); t.join()
    assert subprocess.run(['echo', 'hi'], capture_output=True).stdout == b'hi\n'
    async def g():
        p = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1); return await p.communicate(b'z')
    assert asyncio.run(g())[0] == b'z'
    with tempfile.NamedTemporaryFile() as x: x.write(b'1')
    m, s = os.openpty(); os.close(m); os.close(s)
    for refused in (lambda: socket.socket(), lambda: socket.socket(socket.AF_UNIX)):
        try: refused(); raise SystemExit('not refused')
        except PermissionError: pass
    with multiprocessing.get_context('fork').Pool(2) as p: print(p.map(f, [1, 2, 3]), 'ok')
END
python3 m.py`},
		"python on the net": {needs: []string{"python3"}, inet: true, want: "over tcp", script: `cat > m.py <<'END'
import socket, threading
s = socket.create_server(('127.0.0.1', 0))
def serve(): c, _ = s.accept(); c.sendall(b'over tcp'); c.close()
threading.Thread(target=serve).start()
c = socket.create_connection(('localhost', s.getsockname()[1])); print(c.recv(99).decode())
u = socket.socket(type=socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))
END
python3 m.py | tail -1`},
		"gcc and make": {needs: []string{"gcc", "make"}, want: "42 threads", script: `cat > a.c <<'END'
#include <pthread.h>
#include <stdio.h>
#include <spawn.h>
#include <sys/wait.h>
extern char **environ; int b(void); static void *f(void *p) { *(int *)p = b(); return 0; }
int main(void) { int n = 0; pthread_t t; pthread_create(&t, 0, f, &n); pthread_join(t, 0);
  pid_t p; char *argv[] = {"true", 0}; if (posix_spawnp(&p, "true", 0, 0, argv, environ)) return 1; int s; waitpid(p, &s, 0);
  FILE *o = popen("cat", "w"); fprintf(o, "%d threads\n", n); return pclose(o) | s; }
END
echo 'int b(void) { return 42; }' > b.c
printf 'a: a.o b.o\n\tgcc -pthread -o $@ $^\n%%.o: %%.c\n\tgcc -O1 -c $<\n' > Makefile
make -s -j4 && ./a`},
		"go": {needs: []string{"go"}, cache: true, want: "built", script: `mkdir p && cd p && printf 'module m\ngo 1.24\n' > go.mod
printf 'package main\nimport "os"\nfunc main() { c := make(chan int); go func() { c <- 1 }(); <-c; _, _ = os.Stdout.WriteString("built\\n") }\n' > m.go
go build -buildvcs=false -o m . && ./m`},
		"cargo": {needs: []string{"cargo"}, cache: true, want: "rust 3", script: `mkdir -p p/src && cd p
printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n' > Cargo.toml
printf 'fn main() { let h = std::thread::spawn(|| 3); println!("rust {}", h.join().unwrap()); }\n' > src/main.rs
cargo run -q --offline`},
	}
}

// TestFilterCost prints what a call costs more, which no machine repeats: the limit is far off.
func TestFilterCost(t *testing.T) {
	if os.Getenv(roleVariable) != "" {
		runtime.LockOSThread()
		cost := func() time.Duration {
			best := time.Hour
			for range 5 {
				begin := time.Now()
				for range 20_000 {
					// looked at in full every time
					_, _, _ = unix.RawSyscall(unix.SYS_IOCTL, ^uintptr(0), unix.TCGETS, 0)
				}
				best = min(best, time.Since(begin)/20_000)
			}
			return best
		}
		free := cost()
		err := install(systemCalls(Namespaces, false, holdsNothing))
		filtered := cost()
		fmt.Printf("ioctl %v, filtered %v\n", free, filtered)
		if err == nil && filtered > free+20*time.Microsecond {
			err = errors.New("too slow")
		}
		leave(err)
	}
	out, err := asRole(t, "filtered")
	if err != nil {
		t.Errorf("%v", err)
	}
	t.Log(strings.TrimSpace(out))
}
