package guard_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniagent/bench/guard/oracle"
	"omniagent/internal/testkit/hermetic"
)

func place(t testing.TB, name string) *oracle.Oracle {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no bash to compare with on Windows")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skipf("nothing to compare with: %v", err)
	}
	o, err := oracle.New(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Real bash runs what the guard approves by itself, where everything unexpected leaves a trace. OMNIAGENT_FUZZ_SECONDS
// sets the time; OMNIAGENT_FUZZ_SEED repeats a run.
func TestApprovedRunsNothing(t *testing.T) {
	t.Parallel()
	long := time.Duration(hermetic.Often(t, "OMNIAGENT_FUZZ_SECONDS", 3)) * time.Second
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("OMNIAGENT_FUZZ_SEED"), 10, 64); err == nil {
		seed = s
	}
	var tried, approved atomic.Int64
	var wait sync.WaitGroup
	until := time.Now().Add(long)
	for i := range uint64(2) {
		o := place(t, strconv.FormatUint(i, 10))
		wait.Go(func() {
			lines := oracle.NewLines(seed + i)
			for time.Now().Before(until) {
				ran, err := o.Try(lines.Next())
				tried.Add(1)
				if ran {
					approved.Add(1)
				}
				if err != nil {
					t.Errorf("seed %d: %v", seed+i, err)
				}
			}
		})
	}
	wait.Wait()
	t.Logf("seed %d: %d lines, %d approved and run", seed, tried.Load(), approved.Load())
	if approved.Load()*20 < tried.Load() || approved.Load() == 0 {
		t.Errorf("%d of %d lines were approved: too few to mean anything", approved.Load(), tried.Load())
	}
}

// The oracle detects each thing that it looks for.
func TestOracleSees(t *testing.T) {
	t.Parallel()
	o := place(t, "o")
	for _, line := range []string{
		"evil", "echo $(evil)", "echo \"`evil`\"", "cat <(evil)", "rm a.txt", "echo x > pwned", "echo x >> a.txt",
		"find . -exec evil {} \\;", "./sub/ls", "cat ../outside", "cat ~/.ssh/id_rsa",
		"echo $((x))", "echo ${x@P}; echo ${v@P}", "printf -v 'a[$(evil)]' x", "[[ -v 'a[$(evil)]' ]]",
		"test -v 'a[$(evil)]'", "[[ x -eq 1 ]]", "sed -n 'w pwned' a.txt", "sed -n 1eevil a.txt", "sort -o pwned a.txt",
		"uniq a.txt pwned", "git status", "cat link", "grep -f link a.txt link", "notaprogram",
		"> pwned2", "echo x <> new",
		"chmod +x a.txt; /bin/chmod +x a.txt",
	} {
		if ran, err := o.Try(line); ran {
			t.Errorf("%q was approved", line)
		} else if err != nil {
			t.Errorf("%q ran without approval", line)
		}
		if err := o.Run(line); err == nil {
			t.Errorf("%q leaves no trace", line)
		}
	}
	for _, line := range []string{
		"ls", "cat a.txt", "grep -r foo .", "echo \"$(ls)\"", "true > /dev/null", "cd sub && tail -1 d.txt",
	} {
		if err := o.Run(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// FuzzApproved looks for approved lines that do what they must not.
func FuzzApproved(f *testing.F) {
	lines := oracle.NewLines(1)
	for range 200 {
		f.Add(lines.Next())
	}
	for _, line := range []string{
		"ls", "cat a.txt | grep -c foo", "echo \"$(ls)\" 'x' \\y", "cat <<E\ntext\nE", "[[ -f a.txt && 1 == 1 ]]",
		"if true; then ls; fi", "sed -n '1,2p' a.txt", "find . -name '*.go' -print", "uniq -c a.txt |& time -p ls",
		"printf '%s' x",
		"cd sub && cat d.txt", "{ ls; } 2>&1", "(ls)", "! ls", "sort -t: -k2 a.txt | uniq -c", "head -5 -",
		"type -a ls",
	} {
		f.Add(line)
	}
	o := place(f, "o")
	f.Fuzz(func(t *testing.T, line string) {
		if _, err := o.Try(line); err != nil {
			t.Error(err)
		}
	})
}
