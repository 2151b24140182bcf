package acp

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestBorrowed: an agent on the protocol's own library that has no tools of its own reads, writes and runs commands
// through its client, as far as it is offered that, the mode allows it, and it stays in the workspace.
func TestBorrowed(t *testing.T) {
	t.Parallel()
	dir := hosts(t)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	node, err := filepath.Abs(filepath.Join(dir, ".bin", "node"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		both = `offer = ["files", "terminals"]`
		fs   = `{"readTextFile":true,"writeTextFile":true}`
		ran  = `[3,"two!\na b\n",3] killed`
	)
	for _, c := range []struct {
		name, offer, task string
		flags             []string
		answers           []string // words behind omniagent answer RUN
		said, file        string
	}{
		{"yolo", both, "work", []string{"--yolo"}, nil, `[` + fs + `,true] ` + ran, "two!\n"},
		{
			"asked", both, "work", nil, // each attempt begins anew, and goes on after the calls that were made
			[]string{"--approve", "--approve", "--approve"},
			`[` + fs + `,true] killed`,
			"two!\n",
		},
		{
			"files", `offer = ["files"]`, "work",
			[]string{"--auto-edit"},
			nil,
			`[` + fs + `,false] terminal/create: -32601`, "two!\n",
		},
		{"nothing", "", "work", []string{"--yolo"}, nil, `fs/write_text_file: -32601`, absent},
		{
			"outside", both, "outside",
			[]string{"--yolo"},
			nil,
			"fs/read_text_file: -32603 fs/write_text_file: -32603 " +
				"fs/read_text_file: -32002 terminal/output: -32002", absent,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, `[]`)
			p.target(t, "[targets.cli.modes.acp]\n"+c.offer+"\n", node, filepath.Join(here, "borrower.mjs"), dir)
			if err := os.WriteFile(filepath.Join(p.work, "lines.txt"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			h := p.hand(t, append([]string{"run", "--agent", "other", "-p", c.task}, c.flags...)...)
			var asked []string
			for _, answer := range c.answers {
				if h.Data.Reason != "question" {
					t.Fatalf("nothing was asked: %+v %+v", h.Data, h.Error)
				}
				if slices.Contains(asked, h.Data.Questions[0].ID) {
					t.Fatalf("%q twice: %+v", asked, h.Data)
				}
				asked = append(asked, h.Data.Questions[0].ID)
				h = p.hand(t, "answer", h.Data.ID, answer)
			}
			if !strings.Contains(h.Data.Text.Value, c.said) || p.read("made.txt") != c.file {
				t.Errorf("%+v %+v %q", h.Data, h.Error, p.read("made.txt"))
			}
		})
	}
}
