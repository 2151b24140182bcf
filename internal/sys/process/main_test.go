package process

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

const (
	roleVariable  = "OMNIAGENT_PROCESS_TEST_ROLE"
	apartVariable = "OMNIAGENT_PROCESS_TEST_APART" // set: children are started apart
)

// TestMain lets the test binary be the guard, the child, the grandchild or the parent.
func TestMain(m *testing.M) {
	hermetic.Signals()
	if IsGuard(os.Args) {
		syscall.Exit(Guard())
	}
	roles := map[string]func(args []string) error{
		"arguments": func(args []string) error { return json.NewEncoder(os.Stdout).Encode(args) },
		"cat":       func([]string) error { _, err := io.Copy(os.Stdout, os.Stdin); return err },
		"flood":     flood,
		"exit":      func(args []string) error { code, _ := strconv.Atoi(args[0]); os.Exit(code); return nil },
		"die":       func([]string) error { p, _ := os.FindProcess(os.Getpid()); _ = p.Kill(); select {} },
		"stubborn":  stubborn,
		"polite":    polite,
		"sleep":     sleepForEver,
		"family":    family,
		"parent":    parent,
		"starter":   starter,
		"screen":    screen,
		"concealed": concealed,
	}
	name := os.Getenv(roleVariable)
	if name == "" {
		hermetic.InMemory()
		hermetic.AtOnce("4")
		os.Exit(m.Run())
	}
	if err := roles[name](os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Run runs a program far from any workspace.
func Run(ctx context.Context, s Spec) (Result, error) { return Programs{Env: os.Environ()}.Run(ctx, s) }

// as is a Spec that runs the test binary in a role.
func as(t *testing.T, role string, args ...string) Spec {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	return Spec{Argv: append([]string{exe}, args...), Env: roleEnvironment(role)}
}

// roleEnvironment also spares us the second that a program with the race detector sleeps before it exits.
func roleEnvironment(role string) []string {
	return Environment(os.Environ(),
		EnvOptions{Extra: map[string]string{roleVariable: role, "GORACE": "atexit_sleep_ms=0"}})
}

func flood(args []string) error {
	n, err := strconv.Atoi(args[0])
	block := []byte(strings.Repeat("0123456789abcdef", 4096))
	for ; n > 0 && err == nil; n -= len(block) {
		_, err = os.Stdout.Write(block[:min(n, len(block))])
	}
	return err
}

// ready tells the test, through a file, that the signal handlers are in place.
func ready(path string) error { return os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())), 0o600) }

func stubborn(args []string) error {
	signal.Ignore(syscall.SIGTERM, os.Interrupt)
	if err := ready(args[0]); err != nil {
		return err
	}
	return sleepForEver(nil)
}

func polite(args []string) error {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, os.Interrupt)
	if err := ready(args[0]); err != nil {
		return err
	}
	<-asked
	fmt.Println("goodbye")
	return nil
}

func sleepForEver([]string) error {
	time.Sleep(time.Hour)
	return nil
}

// family starts a grandchild in the given way, waits until it runs and exits. The grandchild keeps the pipes.
func family(args []string) error {
	return familyThat(args[0], args[1])
}

func startGrandchild(file string, attr *syscall.SysProcAttr) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe, file)
	cmd.Env = roleEnvironment("stubborn")
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		return err
	}
	fmt.Println("family")
	_, err = awaitPID(context.Background(), file)
	return err
}

// parent runs a family on record and tells when it is there; the test then kills it.
func parent(args []string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	argv := append([]string{exe}, args[2:]...)
	_, err = Run(context.Background(), Spec{Argv: argv, Env: roleEnvironment(args[0]), Register: NewRegister(args[1])})
	return err
}

// awaitPID waits until the process that was to write its number to file has done so.
func awaitPID(ctx context.Context, file string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, hermetic.Patience)
	defer cancel()
	pid := 0
	pollUntilDone(ctx, func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(text))
		return pid > 0
	})
	if pid == 0 {
		return 0, errors.New("nobody wrote " + file)
	}
	return pid, nil
}

func pollUntilDone(ctx context.Context, yes func() bool) {
	over := make(chan time.Time)
	defer context.AfterFunc(ctx, func() { close(over) })()
	pollUntil(yes, over)
}

// wantGone waits for a process to be dead.
func wantGone(t *testing.T, pid int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	alive := true
	pollUntilDone(ctx, func() bool { _, alive = identity(pid); return !alive })
	if alive {
		t.Fatalf("process %d lives", pid)
	}
}

func startParent(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	s := as(t, "parent", args...)
	cmd := exec.Command(s.Argv[0], s.Argv[1:]...)
	cmd.Env, cmd.Stderr = s.Env, os.Stderr
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) *fault.Fault {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v (%s), want %s", err, fault.Of(err).Code, code)
	}
	return fault.Of(err)
}

func temporary(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

func linesOf(text []byte) []string {
	var lines []string
	for s := bufio.NewScanner(strings.NewReader(string(text))); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
