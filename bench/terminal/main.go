// Command terminal prints what the rooms of the terminal cost, on a real pseudo terminal: how soon the prompt is on the
// screen, beside an empty Go program; how soon a key is, beside twenty lines of Go in raw mode, while both print a
// thousand tokens a second; how many bytes an answer takes; and whether anything is written while nothing happens.
//
//	go run ./bench/terminal [-n 30] [-keys 300]
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

	"omniagent/internal/testkit/measure"
)

func main() {
	n := flag.Int("n", 30, "start each program `N` times, in turn")
	keys := flag.Int("keys", 300, "press `N` keys")
	flag.Parse()
	if err := run(*n, *keys); err != nil {
		fmt.Fprintln(os.Stderr, "terminal:", err)
		os.Exit(1)
	}
}

func run(n, keys int) error {
	dir, err := os.MkdirTemp("", "omniagent-terminal-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	talk, err := measure.Build(".", "omniagent/bench/terminal/talk", dir)
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
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(text(200<<10)), 0o600); err != nil {
		return err
	}
	if err := prompts(n, empty.File, talk.File); err != nil {
		return err
	}
	if err := latencies(keys, echo.File, talk.File, script); err != nil {
		return err
	}
	return bytesOf(talk.File, script)
}

// text is Markdown of that size, without capitals.
func text(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		for j := range 30 {
			fmt.Fprintf(&b, "some words of part %d and **bold %d** ones ", i, j)
		}
		b.WriteString("\n\n- an item\n- another with `code`\n\n")
	}
	return b.String()
}

func report(what string, value, limit float64, unit string) {
	verdict := "as it should be"
	if value > limit {
		verdict = "too much"
	}
	fmt.Printf("%-44s %8.2f %s, at most %.2f: %s\n", what, value, unit, limit, verdict)
}

// prompts compares the time to the prompt with that of an empty program to its end.
func prompts(n int, empty, talk string) error {
	var starts, ends []time.Duration
	for range n {
		begin := time.Now()
		if err := exec.Command(empty).Run(); err != nil {
			return err
		}
		ends = append(ends, time.Since(begin))
		begin = time.Now()
		s, err := measure.Sit(talk)
		if err != nil {
			return err
		}
		at, err := s.Await("> ", 0)
		s.Close()
		if err != nil {
			return err
		}
		starts = append(starts, at.Sub(begin))
	}
	slices.Sort(starts)
	slices.Sort(ends)
	ratio := float64(starts[n/2]) / float64(ends[n/2])
	fmt.Printf("prompt after %v, an empty program ends after %v (medians)\n", starts[n/2], ends[n/2])
	report("prompt on the screen, empty programs", ratio, 8, "x")
	return nil
}

// latencies compares the time from a key to the screen.
func latencies(keys int, echo, talk, script string) error {
	plain, err := measure.Sit(echo)
	if err != nil {
		return err
	}
	defer plain.Close()
	ours, err := measure.Sit(talk, "-rate", "1000", "-script", script)
	if err != nil {
		return err
	}
	defer ours.Close()
	for _, s := range []*measure.Screen{plain, ours} {
		if _, err := s.Await("> ", 0); err != nil {
			return err
		}
	}
	if err := ours.Type("go\r"); err != nil {
		return err
	}
	if _, err := ours.Await("words", 0); err != nil {
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
			from := s.Size()
			begin := time.Now()
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
	for j := range times {
		slices.Sort(times[j])
		worst[j] = times[j][len(times[j])*99/100]
		name := []string{"twenty lines", "ours"}[j]
		fmt.Printf("key to screen, %s: median %v, 99th percentile %v\n", name, times[j][len(times[j])/2], worst[j])
	}
	report("key to screen, twenty lines", float64(worst[1])/float64(worst[0]), 3, "x")
	return nil
}

// bytesOf counts what an answer takes, and what idleness does.
func bytesOf(talk, script string) error {
	for _, rate := range []int{50, 1000} {
		s, err := measure.Sit(talk, "-rate", fmt.Sprint(rate), "-script", script)
		if err != nil {
			return err
		}
		if _, err := s.Await("> ", 0); err != nil {
			return err
		}
		if err := s.Type("go\r"); err != nil {
			return err
		}
		if _, err := s.Await("answering", 0); err != nil {
			return err
		}
		const span = 8 * time.Second
		before := s.Size()
		time.Sleep(span)
		written := float64(s.Size() - before)
		limit := 1.3*float64(rate*5)*span.Seconds() + 2048*span.Seconds()
		fmt.Printf("%d tokens a second: %.0f bytes for %.0f of text in %v\n", rate, written,
			float64(rate*5)*span.Seconds(), span)
		report(fmt.Sprintf("bytes at %d tokens a second", rate), written/limit, 1, "of 1.3 texts and 2 KiB a second")
		if rate == 1000 {
			if err := s.Type("\x03"); err != nil {
				return err
			}
			if _, err := s.Await("interrupted", before); err != nil {
				return err
			}
			time.Sleep(time.Second)
			before = s.Size()
			time.Sleep(3 * time.Second)
			report("bytes in three idle seconds", float64(s.Size()-before), 0, "bytes")
		}
		s.Close()
	}
	return nil
}
