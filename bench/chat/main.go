// Command chat prints what a conversation in a terminal costs, with the whole program and a scripted model on a real
// pseudo terminal: how soon the prompt is there, beside an empty Go program; how soon a key is on the screen while an
// answer streams, beside twenty lines of Go in raw mode; what is written while nothing happens; and how soon files
// are offered in a tree of 200,000.
//
//	go run ./bench/chat [-n 20] [-keys 1000]
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/llm/modelserver"
	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 20, "start each program `N` times, in turn")
	keys := flag.Int("keys", 1000, "press `N` keys")
	flag.Parse()
	if err := run(*n, *keys); err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// bench is the program with a home of its own.
type bench struct {
	program, empty, echo string
	home, work, url      string
}

func run(n, keys int) error {
	dir, err := os.MkdirTemp("", "omniagent-chat-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	for _, d := range []string{b.home, b.work} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	program, err := measure.Build(".", "omniagent/cmd/omniagent", dir)
	if err != nil {
		return err
	}
	empty, err := measure.BuildSource("empty", measure.Empty, dir)
	if err != nil {
		return err
	}
	echo, err := measure.BuildSource("echo", measure.Echo, dir)
	if err != nil {
		return err
	}
	b.program, b.empty, b.echo = program.File, empty.File, echo.File
	words := strings.Repeat("some words of an answer and **bold** ones ", 40) + "\\n\\n- an item\\n\\n"
	script, err := modelserver.ParseScript([]byte(`[{"say":"` + strings.Repeat(words, 1500) + `","slow":"1ms"}]`))
	if err != nil {
		return err
	}
	server, err := modelserver.Start(script, modelserver.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }()
	b.url = server.URL()
	for _, part := range []func() error{
		func() error { return b.prompts(n) },
		func() error { return b.latencies(keys) },
		b.files,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (b bench) open(args ...string) (*measure.Screen, error) {
	cmd := exec.Command(b.program, append([]string{
		"chat", "--provider", "anthropic", "--model", "test-model", "--api-base", b.url,
	}, args...)...)
	cmd.Dir = b.work
	cmd.Env = []string{
		"HOME=" + b.home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "ANTHROPIC_API_KEY=key-of-a-measurement",
	}
	return measure.SitAt(cmd)
}

func report(what string, value, limit float64, unit string) {
	verdict := "as it should be"
	if value > limit {
		verdict = "too much"
	}
	fmt.Printf("%-44s %8.2f %s, at most %.2f: %s\n", what, value, unit, limit, verdict)
}

// placeholder stands in an empty prompt.
const placeholder = "a message"

// prompts compares the time to the prompt with that of an empty program to its end.
func (b bench) prompts(n int) error {
	var starts, ends []time.Duration
	for range n {
		begin := time.Now()
		if err := exec.Command(b.empty).Run(); err != nil {
			return err
		}
		ends = append(ends, time.Since(begin))
		begin = time.Now()
		s, err := b.open()
		if err != nil {
			return err
		}
		at, err := s.Await(placeholder, 0)
		s.Close()
		if err != nil {
			return err
		}
		starts = append(starts, at.Sub(begin))
	}
	slices.Sort(starts)
	slices.Sort(ends)
	fmt.Printf("prompt after %v, an empty program ends after %v (medians)\n", starts[n/2], ends[n/2])
	report("prompt on the screen", float64(starts[n/2])/float64(ends[n/2]), 8, "empty programs")
	return nil
}

// latencies compares the time from a key to the screen while an answer streams, and counts what idleness writes.
func (b bench) latencies(keys int) error {
	plain, err := measure.Sit(b.echo)
	if err != nil {
		return err
	}
	defer plain.Close()
	ours, err := b.open()
	if err != nil {
		return err
	}
	defer ours.Close()
	if _, err := plain.Await("> ", 0); err != nil {
		return err
	}
	if _, err := ours.Await(placeholder, 0); err != nil {
		return err
	}
	if err := ours.Type("go\r"); err != nil {
		return err
	}
	if _, err := ours.Await("bold", 0); err != nil {
		return err
	}
	var times [2][]time.Duration
	for i := range keys {
		letter := string(rune('A' + i%26))
		for j, s := range []*measure.Screen{plain, ours} {
			if i%26 == 0 && j == 1 {
				if err := s.Type("\x15"); err != nil {
					return err
				}
			}
			time.Sleep(time.Duration(20+rand.IntN(30)) * time.Millisecond) // at any moment of a frame
			from, begin := s.Size(), time.Now()
			if err := s.Type(letter); err != nil {
				return err
			}
			at, err := s.Await(letter, from)
			if err != nil {
				return err
			}
			times[j] = append(times[j], at.Sub(begin))
		}
	}
	var worst [2]time.Duration
	for j, name := range []string{"twenty lines", "ours"} {
		slices.Sort(times[j])
		worst[j] = times[j][len(times[j])*99/100]
		fmt.Printf("key to screen, %s: median %v, 99th percentile %v\n", name, times[j][len(times[j])/2], worst[j])
	}
	report("key to screen, 99th percentile", float64(worst[1])/float64(worst[0]), 3, "times twenty lines")
	if err := ours.Type("\x15\x03"); err != nil { // the end of the turn, if it still runs
		return err
	}
	time.Sleep(3 * time.Second) // the last frames
	from := ours.Size()
	time.Sleep(5 * time.Second)
	report("bytes in five idle seconds", float64(ours.Size()-from), 0, "bytes")
	return nil
}

// files measures how soon the first candidates of a large tree are there: at its top and in its largest directory.
func (b bench) files() error {
	for i := range 100 {
		dir := filepath.Join(b.work, fmt.Sprintf("dir%02d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		count := 1000
		if i == 99 {
			count = 101_000
		}
		for j := range count {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%06d.txt", j)), nil, 0o600); err != nil {
				return err
			}
		}
	}
	for _, dir := range []string{"", "dir99/"} {
		s, err := b.open()
		if err != nil {
			return err
		}
		defer s.Close()
		if _, err := s.Await(placeholder, 0); err != nil {
			return err
		}
		if err := s.Type("see @file:" + strings.TrimSuffix(dir, "/")); err != nil {
			return err
		}
		if dir != "" {
			time.Sleep(time.Second) // those of its parent
		}
		from, begin, last := s.Size(), time.Now(), dir[max(0, len(dir)-1):]
		want := ".txt"
		if dir == "" {
			last, want = "d", "dir0"
		}
		if err := s.Type(last); err != nil {
			return err
		}
		at, err := s.Await(want, from)
		if err != nil {
			return err
		}
		report("first candidates of @file:"+dir, float64(at.Sub(begin))/float64(time.Millisecond), 50, "ms")
	}
	return nil
}
