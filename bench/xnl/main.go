// Command xnl measures the reader and the printer of XNL beside encoding/json on the same data, in one run, and fails
// below 100 MB/s.
//
//	go run ./bench/xnl [-n 20] [-mb 8]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"omniagent/internal/kit/xnl"
)

// least is the promise, in MB/s.
const least = 100

func main() {
	n := flag.Int("n", 20, "run each `N` times, in turn")
	size := flag.Int("mb", 8, "`MB` of text")
	flag.Parse()
	if *n < 1 || *size < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*n, *size<<20); err != nil {
		fmt.Fprintln(os.Stderr, "xnl:", err)
		os.Exit(1)
	}
}

// conversation returns records of a conversation, as chat keeps them.
func conversation(size int) (nodes []*xnl.Node) {
	code := strings.Repeat("\tfor i := range 10 {\n\t\tfmt.Println(\"line\", i)\n\t}\n", 8)
	for bytes := 0; bytes < size; bytes += 1300 {
		nodes = append(nodes, &xnl.Node{Tag: "user", Attributes: xnl.Object{
			{Key: "content", Value: "What does the function in main.go do, and where is it called?"},
		}}, &xnl.Node{Tag: "assistant", Attributes: xnl.Object{
			{Key: "reasoning_content", Value: ""},
			{Key: "content", Value: "I will look at the file and at its tests first."},
			{Key: "toolCalls", Value: []any{xnl.Object{
				{Key: "id", Value: "call_17"},
				{Key: "name", Value: "bash"},
				{Key: "input", Value: xnl.Object{{Key: "command", Value: "ls -la"}, {Key: "wait", Value: int64(2000)}}},
			}}},
		}}, &xnl.Node{
			Kind: xnl.Text, Tag: "tool_resp", Metadata: xnl.Object{{Key: "id", Value: "r1"}}, Marker: "r1", Text: code,
		})
	}
	return nodes
}

func run(n, size int) error {
	nodes := conversation(size)
	text := xnl.Print(nodes, "  ")
	asJSON, err := json.Marshal(nodes)
	if err != nil {
		return err
	}
	var into any
	contests := []struct {
		name  string
		bytes int
		once  func() error
		took  []time.Duration
	}{
		{name: "xnl.Parse", bytes: len(text), once: func() error { _, _, err := xnl.Parse(text); return err }},
		{name: "xnl.Stream, 64 bytes a piece", bytes: len(text), once: func() error { return stream(text) }},
		{name: "xnl.Print", bytes: len(text), once: func() error { _ = xnl.Print(nodes, "  "); return nil }},
		{name: "json.Unmarshal", bytes: len(asJSON), once: func() error { return json.Unmarshal(asJSON, &into) }},
	}
	for range n {
		for i := range contests {
			c := &contests[i]
			began := time.Now()
			if err := c.once(); err != nil {
				return err
			}
			c.took = append(c.took, time.Since(began))
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tbytes\tmedian ms\tMB/s\t× json\t")
	speed := func(i int) float64 {
		slices.Sort(contests[i].took)
		return float64(contests[i].bytes) / 1e6 / contests[i].took[n/2].Seconds()
	}
	theirs := speed(len(contests) - 1)
	for i, c := range contests {
		mine := speed(i)
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.0f\t%.1f\t\n", c.name, c.bytes, 1000*c.took[n/2].Seconds(), mine, mine/theirs)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if got := speed(0); got < least {
		return fmt.Errorf("xnl.Parse reads %.0f MB/s, and has to read %d", got, least)
	}
	return nil
}

// stream reads the text as it would come from a model.
func stream(text string) error {
	var s xnl.Stream
	for text != "" {
		n := min(64, len(text))
		if _, err := s.Feed(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	_, err := s.End()
	return err
}
