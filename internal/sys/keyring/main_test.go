package keyring

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"omniagent/internal/sys/process"
)

// stateVariable names the file in which the program of the tests keeps what it is told.
const stateVariable = "KEYRING_TEST_STATE"

func TestMain(m *testing.M) {
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	switch filepath.Base(os.Args[0]) {
	case "secret-tool":
		os.Exit(playSecretTool(os.Args[1:]))
	case "security":
		os.Exit(playSecurity(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// state is a keyring of the tests: keys by name, and every argument that a program got.
type state struct {
	Keys   map[string]string
	Args   []string
	Locked bool
	Loses  bool // it takes a key and does not keep it
}

func readState() (s state) {
	data, _ := os.ReadFile(os.Getenv(stateVariable))
	_ = json.Unmarshal(data, &s)
	if s.Keys == nil {
		s.Keys = map[string]string{}
	}
	return s
}

func (s state) write() {
	data, _ := json.Marshal(s)
	_ = os.WriteFile(os.Getenv(stateVariable), data, 0o600)
}

// playSecretTool does what secret-tool of libsecret 0.20 does.
func playSecretTool(args []string) int {
	s := readState()
	s.Args = append(s.Args, args...)
	defer func() { s.write() }()
	name := args[len(args)-1]
	if s.Locked || !slices.Contains(args, "service") {
		return 1
	}
	switch args[0] {
	case "store":
		key, _ := io.ReadAll(os.Stdin)
		if !s.Loses {
			s.Keys[name] = string(key)
		}
	case "lookup":
		key, ok := s.Keys[name]
		if !ok {
			return 1
		}
		_, _ = os.Stdout.WriteString(key)
	case "clear":
		if _, ok := s.Keys[name]; !ok {
			return 1
		}
		delete(s.Keys, name)
	}
	return 0
}

// playSecurity does what security of macOS does, as far as it is used.
func playSecurity(args []string) int {
	s := readState()
	s.Args = append(s.Args, args...)
	defer func() { s.write() }()
	if s.Locked {
		return 51
	}
	after := func(words []string, flag string) string { return words[slices.Index(words, flag)+1] }
	switch args[0] {
	case "-i":
		line, _ := io.ReadAll(os.Stdin)
		words := strings.Fields(strings.ReplaceAll(strings.TrimSpace(string(line)), `"`, " "))
		s.Keys[after(words, "-a")] = after(words, "-w")
	case "find-generic-password":
		key, ok := s.Keys[after(args, "-a")]
		if !ok {
			return 44
		}
		_, _ = os.Stdout.WriteString(key + "\n")
	case "delete-generic-password":
		if _, ok := s.Keys[after(args, "-a")]; !ok {
			return 44
		}
		delete(s.Keys, after(args, "-a"))
	}
	return 0
}
