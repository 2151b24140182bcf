package fork_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// Eight forks serve the same port, each its own word, and can be reached from outside; a second program in a fork sees
// the files and the network of the first.
func TestForksServe(t *testing.T) {
	hermetic.Long(t)
	g := newRepository(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		f := g.make(name, fork.Overlay)
		in, hold := io.Pipe()
		ready, said := io.Pipe()
		work, err := f.Start(t.Context(), process.Plan{
			Argv: []string{"serve", "serves", name}, Path: self, Dir: g.dir, Env: os.Environ(), Stdin: in, Stdout: said,
			Stderr: os.Stderr,
		}, fork.Net{Word: "off"})
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(ready).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, ready) }()
		t.Cleanup(func() {
			_ = hold.Close()
			if _, err := work.Wait(); err != nil {
				t.Error(err)
			}
		})
		dialer, err := f.Dial("127.0.0.1:3000")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			conn, err := dialer.Connect()
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(conn); string(got) != name {
				t.Errorf("fork %s serves %q", name, got)
			}
			_ = conn.Close()
		}
		dialer.Close()
		other, err := f.Dial("127.0.0.1:3001")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Connect(); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("a port where nobody listens: %v", err)
		}
		other.Close()
		g.run(f, "echo "+name+" >mine")
		var out bytes.Buffer
		second := g.start(f, "cat mine; exec 3<>/dev/tcp/127.0.0.1/3000 && cat <&3", &out)
		if _, err := second.Wait(); err != nil {
			t.Error(err)
		}
		if !strings.HasPrefix(out.String(), name+"\n") {
			t.Errorf("the second program sees %q", out.String())
		}
		if _, err := f.Delete(t.Context()); !errors.Is(err, fault.Conflicting) {
			t.Errorf("deleted while it is in use: %v", err)
		}
		_, err = f.Start(t.Context(), process.Plan{Argv: []string{"true"}, Path: "/bin/true", Dir: g.dir},
			fork.Net{Word: "on"})
		if !errors.Is(err, fault.Conflicting) {
			t.Errorf("another network: %v", err)
		}
	}
}

// Eight programs that destroy everything at a time reach nothing but their forks.
func TestEightVandals(t *testing.T) {
	g := newRepository(t)
	before := look(t, g.dir)
	var works []*fork.Work
	var outs [8]bytes.Buffer
	for i := range outs {
		f := g.make("", fork.Overlay)
		works = append(works, g.start(f, `git reset -q --hard; git clean -qfdx; git reflog expire --expire=now --all
			git gc -q --prune=now; rm -rf .git; rm -rf ./*; ls -A | wc -l`, &outs[i]))
	}
	for i, work := range works {
		if _, err := work.Wait(); err != nil || outs[i].String() != "1\n" {
			t.Errorf("%d: %v %q", i, err, outs[i].String())
		}
	}
	if diff := cmp.Diff(before, look(t, g.dir)); diff != "" {
		t.Errorf("the workspace was changed: %s", diff)
	}
}

// A fork has no forks, and cannot be applied from inside.
func TestInside(t *testing.T) {
	tiers(t, func(t *testing.T, tier fork.Tier) {
		g := newRepository(t)
		f := g.make("outer", tier)
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		work, err := f.Start(t.Context(), process.Plan{
			Argv: []string{"inside", "inside", g.store.Dir, filepath.Dir(g.dir)}, Path: self, Dir: g.dir,
			Env: os.Environ(), Stdout: &out, Stderr: &out,
		}, fork.Net{Word: "off"})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = work.Wait()
		if got := out.String(); got != "this is the fork outer, and a fork cannot have forks\n" {
			t.Error(got)
		}
	})
}

// An Apply that is killed at any moment has lost nothing, and the next one completes it.
func TestKilled(t *testing.T) {
	hermetic.Long(t)
	g := newGround(t)
	g.must(g.dir, `git init -q -b main; mkdir d; for i in $(seq 120); do seq 30 >d/$i; done; git add .
		git commit -qm first`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed, resumed := 0, 0
	var whole time.Duration // what an Apply takes here; the first one is not killed
	for round := range 13 {
		f := g.make("try", "")
		g.run(f, `sed -i s/^3$/three/ d/*; for i in $(seq 20); do rm d/$i; done; mkdir e; cp d/1?? e; git add .
			git commit -qm second; echo staged >staged; git add staged`)
		g.must(g.dir, "for i in $(seq 40 60); do sed -i s/^20$/twenty/ d/$i; done")
		cmd := exec.CommandContext(t.Context(), self, "applies", g.store.Dir, g.snapshots.Dir, filepath.Dir(g.dir),
			"try")
		said, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, _ = bufio.NewReader(said).ReadString('\n')
		if began := time.Now(); round == 0 {
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			whole = time.Since(began)
		} else {
			timer := time.AfterFunc(rand.N(whole), func() { _ = cmd.Process.Kill() })
			if cmd.Wait() != nil {
				killed++
			}
			timer.Stop()
		}
		if turns, err := g.snapshots.List(g.dir); err == nil && len(turns) > 0 && turns[0].Abandoned {
			if _, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir}); !errors.Is(err, fault.Conflicting) {
				t.Errorf("round %d: an undo that does not name the turn: %v", round, err)
			}
		}
		out := g.apply(f)
		if out.Resumed {
			resumed++
		}
		if len(out.Conflicts) > 0 {
			t.Errorf("round %d: %+v", round, out.Conflicts)
		}
		want := "21 21 100\n"
		got := g.sh(g.dir, `echo $(ls e | wc -l) $(grep -lx twenty d/* | wc -l) $(grep -lx three d/* | wc -l)`)
		if got != want {
			t.Errorf("round %d: %s, want %s", round, got, want)
		}
		if got := g.sh(g.dir, `git fsck --no-dangling --no-progress 2>&1; git log --format=%s
			git status --porcelain | grep -v '^ M d/[456][0-9]$'; find . -name '.omniagent*' -o -name '*.lock'`); got !=
			"second\nfirst\nA  staged\n" {
			t.Errorf("round %d: %s", round, got)
		}
		if out.Resumed && out.Turn != "" { // what both have done is one turn
			back, err := g.snapshots.Undo(t.Context(), undo.Request{Dir: g.dir})
			if err != nil || len(back.NotRestored) > 0 {
				t.Errorf("round %d: %v %+v", round, err, back.NotRestored)
			}
			if got := g.sh(g.dir, `git log --format=%s; ls; grep -lx three d/* | wc -l`); got != "first\nd\n0\n" {
				t.Errorf("round %d, undone: %s", round, got)
			}
		}
		if _, err := f.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		g.must(g.dir, "git reset -q --hard $(git rev-list --max-parents=0 HEAD); git clean -qfdx")
	}
	t.Logf("%d were killed, of which %d had begun", killed, resumed)
	if killed == 0 {
		t.Error("no one was killed in time")
	}
}

// An Apply that cannot write its journal, as on a full disk, leaves the snapshot of one that was killed.
func TestApplyAgainWithoutAJournal(t *testing.T) {
	g := newGround(t)
	g.must(g.dir, "echo mine >a; echo mine >b")
	f := g.make("try", "")
	g.run(f, "echo theirs >a; echo theirs >b")
	turn, err := g.snapshots.Begin(t.Context(), undo.Origin{Dir: g.dir})
	if err != nil {
		t.Fatal(err)
	}
	turn.Leave()
	journal := filepath.Join(g.store.Dir, "try", "apply.json")
	g.must(g.dir, `echo theirs >a; printf '{"turn":"%s","results":{"a":"","b":""}}' `+turn.ID()+" >"+journal)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-Urm", "/bin/sh", "-c", // nothing replaces what is mounted
		`mount --bind "$0" "$0" && exec "$@"`, journal, self, "applies", g.store.Dir, g.snapshots.Dir,
		filepath.Dir(g.dir), "try")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "begins") {
		t.Fatalf("%v: %s", err, out)
	}
	if got := g.sh(g.dir, "cat a b"); got != "theirs\nmine\n" {
		t.Fatal(got)
	}
	if out := g.apply(f); !out.Resumed || out.Turn != turn.ID() {
		t.Errorf("%+v", out)
	}
	g.undo()
	if got := g.sh(g.dir, "cat a b"); got != "mine\nmine\n" {
		t.Error(got)
	}
}

// Where no tier works, the reason and the fix are told for each.
func TestNoTier(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	g := newRepository(t)
	for tier, words := range map[string][]string{
		"overlay": {"overlay: ", "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000"},
		"reflink": {"reflink: files cannot share blocks", "btrfs or XFS"},
	} {
		cmd := exec.CommandContext(t.Context(), "unshare", "-Ur", "/bin/sh", "-c",
			`echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh", self, "makes", g.store.Dir,
			filepath.Dir(g.dir), tier)
		cmd.Dir = g.dir
		out, _ := cmd.CombinedOutput()
		if tier == "reflink" && len(out) == 0 {
			continue // the file system can
		}
		for _, word := range words {
			if !strings.Contains(string(out), word) {
				t.Errorf("%s does not say %q: %s", tier, word, out)
			}
		}
	}
}

// Another user of the machine does it all too.
func TestOrdinaryUser(t *testing.T) {
	hermetic.Long(t)
	// Every day what takes long runs as the superuser only, but for one.
	for _, named := range map[bool][]string{true: {"Test"}, false: {"", "^TestForksServe$"}}[hermetic.Matrices()] {
		cmd := hermetic.AsOrdinary(t, "-test.v")
		if named != "" {
			cmd.Args = append(cmd.Args, "-test.run", named)
		}
		cmd.Env = append(cmd.Env, "OMNIAGENT_WHOLE=")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "PASS: TestApply") && named != "^TestForksServe$" ||
			!strings.Contains(string(out), "PASS: TestForksServe") && named != "" {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestReflinks runs the tests of that tier on XFS in a file, since few machines have a file system whose files can
// share blocks.
func TestReflinks(t *testing.T) {
	hermetic.Long(t)
	if _, err := exec.LookPath("mkfs.xfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("it takes mkfs.xfs, and the superuser to mount what that makes")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	named := "^Test(Apply|ApplyToHardLinks|HardLinksInACopy|ApplyWithoutGit|OverALink|Inside|Owns)$/^reflink$"
	if hermetic.Matrices() {
		named = "Test"
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-euc", `
		truncate -s 1G "$1/image" && mkfs.xfs -q "$1/image" && mkdir "$1/on"
		mount -o loop "$1/image" "$1/on" || exit 77
		TMPDIR=$1/on exec "$2" -test.v -test.run "$3"`, "sh", t.TempDir(), self, named)
	cmd.Env = append(os.Environ(), "OMNIAGENT_WHOLE=")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == 77 {
		t.Skipf("no file can be mounted here: %s", out)
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestApply/reflink") {
		t.Errorf("%v\n%s", err, out)
	}
}
