package allow

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
)

// The test binary is also the process that changes the list.
func TestMain(m *testing.M) {
	if file := os.Getenv("ALLOWLIST_TEST_FILE"); file != "" {
		for n := range 10 {
			name := fmt.Sprintf("%s-%d", os.Getenv("ALLOWLIST_TEST_NAME"), n)
			if err := OpenList(file).Put(Entry{Name: name, At: time.Now()}, nil); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		return
	}
	os.Exit(m.Run())
}

func TestProcessesChangeTheListAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "agents.json")
	var all []*exec.Cmd
	for p := range 6 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "ALLOWLIST_TEST_FILE="+file, fmt.Sprintf("ALLOWLIST_TEST_NAME=%d", p))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	l := OpenList(file)
	for p := range 6 {
		for n := range 10 {
			if _, ok, err := l.Find(fmt.Sprintf("%d-%d", p, n)); !ok || err != nil {
				t.Errorf("%d-%d is lost: %v", p, n, err)
			}
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestEntries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.json")
	if _, ok, err := OpenList(file).Find("x"); ok || err != nil {
		t.Errorf("no file: %v", err)
	}
	if err := (List{}).Put(Entry{Name: "x"}, nil); !errors.Is(err, fault.NoHome) {
		t.Errorf("no place: %v", err)
	}
	e := Entry{Name: "x", At: time.Now(), RealPath: "/x", Files: []File{{Path: "/x", SHA256: "1"}}}
	if err := OpenList(file).Put(e, nil); err != nil {
		t.Fatal(err)
	}
	l := OpenList(file)
	was, ok, err := l.Find("x")
	if !ok || err != nil || !was.Allows(e) {
		t.Fatalf("%+v, %v", was, err)
	}
	other := e
	other.Files = []File{{Path: "/x", SHA256: "2"}}
	if was.Allows(other) {
		t.Error("another content is allowed")
	}
	touched := []File{{Path: "/x", SHA256: "1", Changed: 7}}
	if err := l.Renew(was, touched); err != nil {
		t.Fatal(err)
	}
	if now, _, _ := OpenList(file).Find("x"); now.Files[0].Changed != 7 {
		t.Errorf("%+v", now)
	}
	// What the user has decided since is not undone.
	if err := OpenList(file).Put(Entry{Name: "x", Denied: true, At: time.Now()}, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Renew(was, touched); err != nil {
		t.Fatal(err)
	}
	if now, _, _ := OpenList(file).Find("x"); !now.Denied || len(now.Files) != 0 || now.Allows(e) {
		t.Errorf("%+v", now)
	}
	if had, err := l.Remove("x"); !had || err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := OpenList(file).Find("x"); ok {
		t.Error("it is still there")
	}
}

// Whether there is something to change is known under the lock: another process may have done it since the list was
// read.
func TestTwoDecideTheSame(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agents.json")
	first, second := OpenList(file), OpenList(file)
	if err := first.Put(Entry{Name: "x", Denied: true}, nil); err != nil {
		t.Fatal(err)
	}
	seen := false
	err := second.Put(Entry{Name: "x"}, func(old Entry, had bool) bool { seen = had && old.Denied; return seen })
	if now, _, _ := OpenList(file).Find("x"); err != nil || !seen || !now.Denied {
		t.Errorf("%v, seen %v, then %+v", err, seen, now)
	}
	second = OpenList(file)
	if had, err := first.Remove("x"); !had || err != nil {
		t.Errorf("%v, %v", had, err)
	}
	if had, err := second.Remove("x"); had || err != nil {
		t.Errorf("%v, %v", had, err)
	}
}

// A list that cannot be used is not an empty one, and is left as it is.
func TestUnusableList(t *testing.T) {
	for name, text := range map[string]string{
		"torn": `{"version":1,"age`, "later version": `{"version":2,"agents":[]}`, "empty": "",
	} {
		file := filepath.Join(t.TempDir(), "agents.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l := OpenList(file)
		if _, _, err := l.Find("x"); !errors.Is(err, fault.Unsafe) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Put(Entry{Name: "x"}, nil); !errors.Is(err, fault.Unsafe) {
			t.Errorf("%s: %v", name, err)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != text {
			t.Errorf("%s: %q, %v", name, now, err)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	file := filepath.Join(t.TempDir(), "agents.json")
	if err := OpenList(file).Put(Entry{Name: "x"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, _, err := OpenList(file).Find("x"); !errors.Is(err, fault.Unsafe) {
		t.Errorf("others may write it: %v", err)
	}
}
