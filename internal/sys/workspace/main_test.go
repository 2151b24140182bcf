package workspace

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

const roleVariable = "OMNIAGENT_WORKSPACE_TEST_ROLE"

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	roles := map[string]func(path string) error{
		"rewrite": rewriteForEver,
		"append":  appendLines,
		"count":   countUnderLock,
		"hold":    holdLock,
		"replace": replaceForEver,
	}
	name := os.Getenv(roleVariable)
	if name == "" {
		hermetic.InMemory()
		os.Exit(m.Run())
	}
	if err := roles[name](os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// sealed is content that tells whether it is whole: length, hash, bytes.
func sealed(n int) []byte {
	body := make([]byte, 10+(n*7919)%60000)
	for i := range body {
		body[i] = byte(n + i)
	}
	sum := sha256.Sum256(body)
	return append(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), sum[:]...), body...)
}

func whole(data []byte) error {
	if len(data) < 36 || int(binary.BigEndian.Uint32(data)) != len(data)-36 {
		return fmt.Errorf("torn: %d bytes", len(data))
	}
	if sha256.Sum256(data[36:]) != [32]byte(data[4:36]) {
		return errors.New("mixed content")
	}
	return nil
}

func rewriteForEver(path string) error {
	for n := 0; ; n++ {
		if err := WriteFile(path, sealed(n), 0o600); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func appendLines(path string) error {
	fmt.Println("ready")
	_, _ = io.ReadAll(os.Stdin)
	for n := range 100 {
		line := fmt.Sprintf("%s %d %s", os.Args[2], n, strings.Repeat(os.Args[2], 1+n*37))
		if err := Append(path, []byte(line), 0); err != nil {
			return err
		}
	}
	return nil
}

func countUnderLock(path string) error {
	for range 25 {
		held, err := Lock(context.Background(), path+".lock", time.Minute)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(text))
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(strconv.Itoa(n+1)), 0o600); err != nil {
			return err
		}
		if err := held.Unlock(); err != nil {
			return err
		}
	}
	return nil
}

func holdLock(path string) error {
	if _, err := Lock(context.Background(), path, 0); err != nil {
		return err
	}
	fmt.Println("held")
	_, err := io.ReadAll(os.Stdin)
	return err
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

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	check(t, err)
	if string(got) != want {
		t.Fatalf("%s holds %q, want %q", path, got, want)
	}
}

// leftovers are the temporary files in dir.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, temporaryPrefix+"*"))
	check(t, err)
	return found
}

// other starts the test binary in a role and returns it with its input and what it prints.
func other(t *testing.T, role, path string, args ...string) (*exec.Cmd, io.Closer, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe, append([]string{path}, args...)...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	check(t, err)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, in, bufio.NewReader(out)
}
