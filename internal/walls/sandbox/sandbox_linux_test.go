package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
)

// TestMain lets the test binary stand in for other programs. They go by arguments, since Probe hands no environment on.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if IsStage(os.Args) {
		syscall.Exit(Stage())
	}
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case "ends":
	case "fails":
		err = errors.New("as it should")
	case "hangs":
		time.Sleep(time.Hour)
	case "landlocked":
		err = landlocked(os.Args[2], os.Args[3])
	case "mounts":
		err = mountsAt(os.Args[2])
	case "holds":
		err = holder(os.Args[2], os.Args[3], os.Args[4])
	case "twice":
		err = twice(os.Args[2])
	case "catches":
		err = catcher(os.Args[2])
	case "races":
		err = racer(os.Args[2])
	case "allocates":
		err = allocates()
	case "forks":
		err = forks()
	case "fetches":
		err = fetches(os.Args[2], os.Args[3])
	case "as-it-is", "without-namespaces", "masked-processes":
		switch os.Args[1] {
		case "without-namespaces":
			err = withoutNamespaces()
		case "masked-processes":
			err = maskedProcesses()
		}
		if err == nil {
			os.Args = slices.Delete(os.Args, 1, 2)
			os.Exit(m.Run())
		}
	case "attack":
		err = attacker(os.Args[2:])
	case "confines":
		err = confinesItself()
	case "probes":
		err = probesInside()
	case "signals":
		err = signalsSupervisor()
	case "reaches":
		err = reachesPerson()
	case "alone":
		err = alone()
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(3)
	}
	syscall.Exit(0) // unlike os.Exit, at once: under the race detector that one sleeps for a second
}

func self(args ...string) Options { return Options{Self: append([]string{"/proc/self/exe"}, args...)} }

func factNames() []string {
	return []string{
		FactLandlock, FactLandlockEnforced, FactSeccomp, FactSeccompEnforced, FactUserNamespace,
		FactMountNamespace, FactNetworkNamespace,
	}
}

// TestProbeTries compares what is said with what walls do.
func TestProbeTries(t *testing.T) {
	o := self("ends")
	o.Stage = true
	began := time.Now()
	r := Probe(t.Context(), o)
	t.Logf("%v: %+v, holes %q", time.Since(began), r.fact(FactWallsHold), r.Holes)
	if plain := Probe(t.Context(), self("ends")); r.fact(FactWallsHold).OK != (plain.Tier != None) ||
		r.Tier != plain.Tier {
		t.Errorf("tier %s, tried %s: %+v", plain.Tier, r.Tier, r.fact(FactWallsHold))
	}
}

func check(t *testing.T, r Report) {
	t.Helper()
	var got []string
	for _, f := range r.Facts {
		got = append(got, f.Name)
		if f.Detail == "" || f.OK && f.Fix != "" {
			t.Errorf("%+v", f)
		}
	}
	if !slices.Equal(got, factNames()) {
		t.Errorf("facts %q", got)
	}
	if r.OS != "linux" || len(r.Holes) == 0 && r.Tier != Namespaces {
		t.Errorf("%+v", r)
	}
}

func TestProbe(t *testing.T) {
	r := Probe(t.Context(), self("ends"))
	check(t, r)
	for _, f := range r.Facts {
		t.Logf("%-18s %-5v %s [%s]", f.Name, f.OK, f.Detail, f.Fix)
	}
	t.Logf("tier %d (%s), privileged %v, kernel %s, holes %q", r.Tier, r.Tier, r.Privileged, release(), r.Holes)
	if again := Probe(t.Context(), self("ends")); !reflect.DeepEqual(r, again) {
		t.Errorf("first %+v\nthen %+v", r, again)
	}
	if r.Privileged && r.fact(FactUserNamespace).OK && !strings.Contains(r.fact(FactUserNamespace).Detail,
		"other users") {
		t.Errorf("privileges are not mentioned: %+v", r.fact(FactUserNamespace))
	}
}

// TestNothingSticks looks at every thread: none may keep a restriction, nor may the process be unable to start others.
func TestNothingSticks(t *testing.T) {
	before := restrictions(t)
	for range 5 {
		Probe(t.Context(), self("ends"))
	}
	for deadline := time.Now().Add(hermetic.Patience); ; time.Sleep(time.Millisecond) {
		after := restrictions(t) // a thread that is about to end may still be seen
		if slices.Equal(before, after) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("before %q, after %q", before, after)
		}
	}
	if err := os.WriteFile(filepath.Join(t.TempDir(), "file"), nil, 0o600); err != nil {
		t.Error(err)
	}
	if err := exec.Command("/proc/self/exe", "ends").Run(); err != nil {
		t.Error(err)
	}
}

// TestMainThread runs the doomed function while the calling goroutine may sit on any thread, many times, so that the
// main one is met.
func TestMainThread(t *testing.T) {
	for range 200 {
		err := onDoomedThread(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("on the main thread, which does not end")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func restrictions(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var seen []string
	for _, file := range files {
		data, _ := os.ReadFile(file) // the thread may have ended
		for line := range strings.Lines(string(data)) {
			if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "Seccomp:") {
				seen = append(seen, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(seen)
	return slices.Compact(seen)
}

func TestWithoutACommand(t *testing.T) {
	for name, o := range map[string]Options{
		"none": {}, "fails": self("fails"),
		"not there": {Self: []string{"/no/such"}},
	} {
		r := Probe(t.Context(), o)
		check(t, r)
		for _, f := range r.Facts[4:] {
			if f.OK || !strings.HasPrefix(f.Detail, "not tried") {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if whole := Probe(t.Context(),
			self("ends")); r.fact(FactLandlockEnforced).OK != whole.fact(FactLandlockEnforced).OK {
			t.Errorf("%s: Landlock needs no command: %+v", name, r.fact(FactLandlockEnforced))
		}
		if r.Tier == Namespaces {
			t.Errorf("%s: tier %s", name, r.Tier)
		}
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := Probe(ctx, self("ends"))
	check(t, r)
	if r.Tier != None {
		t.Errorf("tier %s", r.Tier)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	r = Probe(ctx, self("hangs"))
	check(t, r)
	if r.fact(FactUserNamespace).OK {
		t.Errorf("%+v", r)
	}
}

// TestLandlockHolds lets a real program restrict itself to one directory and write elsewhere.
func TestLandlockHolds(t *testing.T) {
	r := Probe(t.Context(), self("ends"))
	claimed := r.fact(FactLandlockEnforced)
	in, out := t.TempDir(), t.TempDir()
	text, err := exec.Command("/proc/self/exe", "landlocked", in, out).CombinedOutput()
	if claimed.OK != (err == nil) {
		t.Errorf("claimed %+v, attempt: %v %s", claimed, err, text)
	}
	if _, err := os.Stat(filepath.Join(in, "file")); claimed.OK && err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(out, "file")); claimed.OK && err == nil {
		t.Error("a file was written outside")
	}
}

func landlocked(in, out string) error {
	runtime.LockOSThread()
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
			unix.LANDLOCK_ACCESS_FS_REMOVE_FILE,
	}
	set, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
	if errno != 0 {
		return errno
	}
	dir, err := unix.Open(in, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: attr.Handled_access_fs, Parent_fd: int32(dir)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, set, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); errno != 0 {
		return errno
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, set, 0, 0); errno != 0 {
		return errno
	}
	if err := os.WriteFile(filepath.Join(in, "file"), nil, 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "file"), nil, 0o600); !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("writing outside: %v", err)
	}
	return nil
}

// TestNamespacesHold compares the claims with a program that uses what it was given.
func TestNamespacesHold(t *testing.T) {
	r := Probe(t.Context(), self("ends"))
	dir := t.TempDir()
	for _, tt := range []struct {
		name    string
		unshare uintptr
		args    []string
	}{
		{FactUserNamespace, 0, []string{"ends"}},
		{FactMountNamespace, unix.CLONE_NEWNS, []string{"mounts", dir}},
		{FactNetworkNamespace, unix.CLONE_NEWNET, []string{"alone"}},
	} {
		cmd := exec.Command("/proc/self/exe", tt.args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:   unix.CLONE_NEWUSER,
			Unshareflags: tt.unshare,
			UidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings:  []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		text, err := cmd.CombinedOutput()
		if claimed := r.fact(tt.name); claimed.OK != (err == nil) {
			t.Errorf("claimed %+v, attempt: %v %s", claimed, err, text)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
		t.Errorf("the mount shows outside: %v %v", list, err)
	}
}

func mountsAt(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "inside"), nil, 0o600)
}

func alone() error {
	list, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Flags&net.FlagUp != 0 {
			return fmt.Errorf("%s is up", i.Name)
		}
	}
	return nil
}

func TestHoles(t *testing.T) {
	has := func(list []string, part string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, part) })
	}
	for abi := range 9 {
		weak, strong := holes(Landlock, abi), holes(Namespaces, abi)
		for _, always := range []string{"chmod", "chown", "utimes"} {
			if !has(weak, always) || has(strong, always) {
				t.Errorf("ABI %d, %s: %q, %q", abi, always, weak, strong)
			}
		}
		if has(weak, "truncating") != (abi < 3) || has(weak, "ioctl") != (abi < 5) ||
			has(strong, "signals") != (abi < 6) {
			t.Errorf("ABI %d: %q, %q", abi, weak, strong)
		}
	}
	if got := holes(None, 7); !slices.Equal(got, []string{noWall}) {
		t.Errorf("%q", got)
	}
}

func TestRefusalInWords(t *testing.T) {
	for err, want := range map[error]string{
		unix.ENOSPC: "limit", unix.EPERM: "refused: ", unix.EINVAL: "built without", errors.New("other"): "other",
	} {
		if got := refusal(err); !strings.Contains(got, want) {
			t.Errorf("%v: %q", err, got)
		}
	}
}
