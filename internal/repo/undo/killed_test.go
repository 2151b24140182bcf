package undo_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/repo/undo"
	"omniagent/internal/testkit/hermetic"
)

// TestAnEditAfterTheKillStays kills a restore that was asked to overwrite, edits a file, and has it completed.
func TestAnEditAfterTheKillStays(t *testing.T) {
	hermetic.Long(t)
	const test = "TestAnEditAfterTheKillStays"
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		_, err := undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}.Undo(t.Context(), undo.Request{Dir: dir, TakeOld: true})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	resumed := 0
	for after := 4; after < 120 && resumed < 3; after += 4 {
		s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
		sh(t, root, `for i in $(seq 2000); do echo $i > n$i; done; echo before > zz; echo before > zzz`)
		was := look(t, root)
		turn := begin(t, s, root)
		sh(t, root, `rm n*; echo agent > zz; echo agent > zzz`)
		end(t, turn)
		sh(t, root, `echo mine > zzz`)
		kill(t, test, s, root, func() bool {
			files, _ := os.ReadDir(root)
			return len(files) > 2+after
		})
		files, _ := os.ReadDir(root)
		if len(files) > 2000 {
			continue
		}
		sh(t, root, `echo later > zz; rm -f unrelated`)
		is := look(t, root)
		out := back(t, s, undo.Request{Dir: root})
		if !out.Resumed {
			continue
		}
		resumed++
		same(t, "kept", []string{"zz"}, keeps(out))
		want := maps.Clone(was)
		want["zz"] = is["zz"]
		same(t, "after the undo", want, look(t, root))
		out = back(t, s, undo.Request{Dir: root, Redo: true})
		if got := look(t, root); len(out.NotRestored) > 0 || got["zz"] != is["zz"] || got["n1"] != "" {
			t.Errorf("redo keeps %v; zz is %s, not %s", out.NotRestored, got["zz"], is["zz"])
		}
		if files, _ := filepath.Glob(filepath.Join(root, ".omniagent*")); len(files) > 0 {
			t.Errorf("left is %v", files)
		}
	}
	if resumed == 0 {
		t.Error("no restore was killed in the middle")
	}
}

// TestAnEditInTheMiddleStays edits a file while a restore is at work on others.
func TestAnEditInTheMiddleStays(t *testing.T) {
	hermetic.Long(t)
	for _, script := range []string{`rm n*; echo agent > zz`, `rm n*; rm zz`, `rm n*; rm zz; ln -s n zz`} {
		const tries = 20
		n := 0
		for n < tries && !editInTheMiddle(t, script) {
			n++
		}
		if n == tries {
			t.Errorf("%s: each restore was over before the edit", script)
		}
	}
}

// editInTheMiddle reports whether the file was edited before the restore came to it, which is last.
func editInTheMiddle(t *testing.T, script string) bool {
	t.Helper()
	s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
	sh(t, root, `for i in $(seq 1000); do echo $i > n$i; done; echo before > zz`)
	turn := begin(t, s, root)
	sh(t, root, script)
	end(t, turn)
	done := make(chan undo.Outcome)
	go func() {
		out, err := s.Undo(t.Context(), undo.Request{Dir: root})
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	for files := []os.DirEntry{}; len(files) < 5; {
		files, _ = os.ReadDir(root)
	}
	_ = os.Remove(filepath.Join(root, "zz"))
	put(t, filepath.Join(root, "zz"), "mine")
	out := <-done
	if text, err := os.ReadFile(filepath.Join(root, "zz")); err != nil || string(text) != "mine" {
		t.Errorf("%s: zz is %q, %v", script, text, err)
	}
	if len(out.Restored) == 1001 {
		return false
	}
	if !slices.Equal(keeps(out), []string{"zz"}) || len(out.Restored) != 1000 {
		t.Errorf("%s: kept %v, restored %d", script, out.NotRestored, len(out.Restored))
	}
	return true
}

// kill starts a test in a process of its own and kills it once something is so.
func kill(t *testing.T, test string, s undo.Store, root string, so func() bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run="+test+"$")
	cmd.Env = append(os.Environ(), "UNDO_TEST_DIR="+root, "UNDO_TEST_STORE="+s.Dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		default:
		}
		if so() {
			_ = cmd.Process.Kill()
			<-done
			return
		}
	}
}

// TestADamagedSnapshotEndsARestore damages what a killed restore needs.
func TestADamagedSnapshotEndsARestore(t *testing.T) {
	const test = "TestAnEditAfterTheKillStays"
	for range 20 {
		s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
		sh(t, root, `for i in $(seq 2000); do echo $i > n$i; done`)
		turn := begin(t, s, root)
		sh(t, root, `rm n*`)
		r := end(t, turn)
		kill(t, test, s, root, func() bool { files, _ := os.ReadDir(root); return len(files) > 5 })
		if journals, _ := filepath.Glob(filepath.Join(s.Dir, "*", "journal.json")); len(journals) == 0 {
			continue
		}
		named, _ := filepath.Glob(filepath.Join(s.Dir, "*", "turns", r.ID, "before-0"))
		if _, _, err := s.Delete(t.Context(), func(undo.Record) bool { return true }); !errors.Is(err,
			fault.Conflicting) {
			t.Errorf("in the middle of a restore, delete gives %v", err)
		}
		put(t, named[0], "damaged")
		turns := filepath.Dir(filepath.Dir(named[0]))
		ids, _ := os.ReadDir(turns)
		blocked := filepath.Join(turns, ids[len(ids)-1].Name(), "after-0")
		sh(t, root, `mkdir -p `+blocked+`/x`) // as a full disk, it keeps the second snapshot from being saved
		if out, err := s.Undo(t.Context(), undo.Request{Dir: root}); err == nil {
			t.Fatalf("without a second snapshot the restore ends: %v", out)
		}
		if _, err := os.Lstat(filepath.Join(filepath.Dir(blocked), "before-0")); err != nil {
			t.Errorf("what the restore overwrote is lost: %v", err)
		}
		sh(t, root, `rm -r `+blocked)
		if _, err := s.Undo(t.Context(), undo.Request{Dir: root}); err == nil ||
			!strings.Contains(err.Error(), "completed") {
			t.Fatalf("the restore ends with %v", err)
		}
		turn = begin(t, s, root)
		put(t, filepath.Join(root, "more"), "more")
		end(t, turn)
		same(t, "kept", []string{}, keeps(back(t, s, undo.Request{Dir: root})))
		return
	}
	t.Error("no restore was killed in the middle")
}

// TestADamagedJournalIsNoObstacle damages the journal of a killed restore.
func TestADamagedJournalIsNoObstacle(t *testing.T) {
	hermetic.Long(t)
	const test = "TestAnEditAfterTheKillStays"
	for range 20 {
		s, root := undo.Store{Dir: t.TempDir()}, t.TempDir()
		sh(t, root, `for i in $(seq 2000); do echo $i > n$i; done`)
		was := look(t, root)
		turn := begin(t, s, root)
		sh(t, root, `rm n*`)
		end(t, turn)
		kill(t, test, s, root, func() bool { files, _ := os.ReadDir(root); return len(files) > 5 })
		journals, _ := filepath.Glob(filepath.Join(s.Dir, "*", "journal.json"))
		if len(journals) == 0 {
			continue
		}
		put(t, journals[0], "")
		if out := back(t, s, undo.Request{Dir: root}); !out.Resumed || len(out.NotRestored) > 0 {
			t.Errorf("resumed: %v, kept %v", out.Resumed, out.NotRestored)
		}
		same(t, "after the undo", was, look(t, root))
		return
	}
	t.Error("no restore was killed in the middle")
}

// TestTwoUndosAtOnceTakeBackOneTurn starts several processes together.
func TestTwoUndosAtOnceTakeBackOneTurn(t *testing.T) {
	const test = "TestTwoUndosAtOnceTakeBackOneTurn"
	if dir := os.Getenv("UNDO_TEST_DIR"); dir != "" {
		fmt.Println("ready")
		if _, err := os.Stdin.Read(make([]byte, 1)); err == nil { // both begin when the other end is closed
			t.Fatal("something was written")
		}
		_, err := undo.Store{Dir: os.Getenv("UNDO_TEST_STORE")}.Undo(t.Context(), undo.Request{Dir: dir})
		if err != nil && !errors.Is(err, fault.Conflicting) {
			t.Fatal(err)
		}
		return
	}
	s, root := undo.Store{Dir: t.TempDir()}, filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, root, `for i in $(seq 300); do echo $i > n$i; done`)
	for _, text := range []string{"1", "2", "3"} {
		turn := begin(t, s, root)
		sh(t, root, `for i in $(seq 300); do echo `+text+` > n$i; done`)
		end(t, turn)
	}
	wait, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	var running []*exec.Cmd
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run="+test+"$")
		cmd.Env = append(os.Environ(), "UNDO_TEST_DIR="+root, "UNDO_TEST_STORE="+s.Dir)
		cmd.Stdin = wait
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("%q %v", line, err)
		}
		running = append(running, cmd)
	}
	start.Close()
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "n1"))
	if err != nil || string(text) != "2\n" {
		t.Errorf("n1 is %q, %v", text, err)
	}
}
