package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/testkit/hermetic"
)

const roleVariable = "OMNIAGENT_SESSION_TEST_ROLE"

// TestMain lets the test binary be the other process.
func TestMain(m *testing.M) {
	roles := map[string]func(dir string) error{
		"write": writeForEver, "hold": holdSession, "follow": followEvents,
		"converse": converse, "full": fillDisk,
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

// other starts the test binary in a role and returns it with its input and what it prints.
func other(t *testing.T, role, dir string) (*exec.Cmd, io.Closer, *bufio.Reader) {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe, dir)
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

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code fault.Code) *fault.Fault {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("got %v, want %s", err, code)
	}
	f := fault.Of(err)
	if f.Suggestion == "" {
		t.Errorf("no hint in %v", err)
	}
	return f
}

func store(t testing.TB) Store {
	t.Helper()
	return Open(filepath.Join(t.TempDir(), "sessions"))
}

func create(t testing.TB, s Store, id string) *Session {
	t.Helper()
	own, err := s.Create(context.Background(), Begin{
		ID: id, Provider: "gemini", Model: "m1", Cwd: "/w", Mode: "default",
	})
	check(t, err)
	t.Cleanup(func() { _ = own.Close() })
	return own
}

func resume(t testing.TB, s Store, id string) *Session {
	t.Helper()
	own, err := s.Resume(context.Background(), id)
	check(t, err)
	t.Cleanup(func() { _ = own.Close() })
	return own
}

func add(t testing.TB, s *Session, r Record) int64 {
	t.Helper()
	n, err := s.Append(r)
	check(t, err)
	return n
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func user(words string) Message {
	return Message{Message: model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: words}}}}
}

func assistant(words string, calls ...string) Message {
	m := model.Message{Role: model.Assistant, Blocks: []model.Block{{Kind: model.Text, Text: words}}}
	for _, id := range calls {
		m.Blocks = append(m.Blocks, model.Block{
			Kind: model.Call, ID: id, Name: "Read", Input: []byte(`{"file_path":"a.txt"}`),
		})
	}
	return Message{Message: m, Answer: "msg_1", Usage: &model.Usage{Input: 10, CacheRead: 5, Output: 3}, Cost: 0.25}
}

func result(id, words string) Message {
	return Message{Message: model.Message{
		Role:   model.User,
		Blocks: []model.Block{{Kind: model.Result, ID: id, Name: "Read", Text: words}},
	}}
}

func end() End {
	cost := 0.25
	return End{Event: &event.Event{Kind: event.Ended, End: &event.End{
		Reason: event.Success, OK: true, Usage: &event.Usage{Input: 15, Cached: 5, Output: 3, CostUSD: &cost},
	}}}
}

// said is what a conversation holds, short: u and a for the sides, then the blocks.
func said(messages []model.Message) string {
	var all []string
	for _, m := range messages {
		line := string(m.Role[:1])
		for _, b := range m.Blocks {
			switch b.Kind {
			case model.Call:
				line += " call:" + b.ID
			case model.Result:
				line += " result:" + b.ID + "=" + b.Text
			default:
				line += " " + b.Text
			}
		}
		all = append(all, line)
	}
	return strings.ReplaceAll(strings.Join(all, " | "), interrupted, "INTERRUPTED")
}

// long writes the journal of a session of so many messages, with a compaction before the last kept ones (none if that
// is 0). It is made like a real one: prompts, answers with calls, results of two kilobytes and a bit, ends of turns.
func long(t testing.TB, s Store, id string, messages, kept int) (path string) {
	t.Helper()
	check(t, os.MkdirAll(s.dir, 0o700))
	path = s.file(id, journalEnding)
	f, err := os.Create(path)
	check(t, err)
	w := bufio.NewWriter(f)
	number, total := int64(0), Total{Provider: "gemini", Model: "m1", Title: "a long one"}
	put := func(r Record) {
		number++
		line, err := Entry{Number: number, Parent: number - 1, Record: r}.line()
		check(t, err)
		_, err = w.Write(line)
		check(t, err)
	}
	put(Begin{Version: version, ID: id, Provider: "gemini", Model: "m1", Cwd: "/w"})
	output := strings.Repeat("     1\tfunc main() { fmt.Println(\"it's a line of a file\") }\n", 64)
	for n := 0; n < messages; n++ {
		if messages-n == kept {
			put(Compacted{Summary: user("what was said before").Message, Trigger: "auto", Before: 100_000})
		}
		switch n % 4 {
		case 0:
			put(user(fmt.Sprintf("prompt %d: look at the file and say what it does", n)))
		case 1:
			put(assistant("Let me look at it.", fmt.Sprintf("call_%d", n)))
		case 2:
			put(result(fmt.Sprintf("call_%d", n-1), output+output[:n%3000]))
		case 3:
			put(assistant(strings.Repeat("It prints a line, and \"quotes\" it.\n", 20)))
			e := end()
			total.Turns, total.Messages, total.Cost = total.Turns+1, n+1, total.Cost+*e.Ended().Usage.CostUSD
			e.Total = total
			put(e)
		}
	}
	check(t, w.Flush())
	check(t, f.Close())
	return path
}
