package stuckprompt

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what was found into the fixtures")

// fixtures is the archive of one signature: outputs at which it finds a prompt, each with the prompt, and outputs at
// which no signature may find one. In an output, ▮ is where the program stopped within a line; ␛ and ␍ are the
// characters that they show.
type fixtures struct {
	file    string
	archive *txtar.Archive
	yes, no map[string]string
	want    map[string]string
}

func readFixtures(t *testing.T) map[string]*fixtures {
	t.Helper()
	files, err := filepath.Glob("testdata/signatures/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	all := map[string]*fixtures{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f := &fixtures{file, archive, map[string]string{}, map[string]string{}, map[string]string{}}
		for _, entry := range archive.Files {
			folder, name, _ := strings.Cut(entry.Name, "/")
			text := strings.NewReplacer("␛", "\x1b", "␍", "\r").Replace(string(entry.Data))
			text, _, _ = strings.Cut(text, "▮")
			switch {
			case folder == "yes" && strings.HasSuffix(name, ".want"):
				f.want[strings.TrimSuffix(name, ".want")] = text
			case folder == "yes":
				f.yes[name] = text
			case folder == "no":
				f.no[name] = text
			default:
				t.Errorf("%s: %q is in neither yes/ nor no/", file, entry.Name)
			}
		}
		all[strings.TrimSuffix(filepath.Base(file), ".txtar")] = f
	}
	return all
}

// said shows a prompt as the fixtures do.
func said(s *Signal) string {
	text := fmt.Sprintf("%s: %s\n", s.Kind, s.Question)
	for _, choice := range s.Choices {
		text += "- " + choice + "\n"
	}
	if s.Default != "" {
		text += "default: " + s.Default + "\n"
	}
	return text
}

func at(output string, exited bool) Program {
	return Program{Stdout: Stream{Tail: []byte(output), Quiet: Quiet}, Stderr: Stream{Quiet: Quiet}, Exited: exited}
}

// TestSignatures: each signature finds its prompts, with question, choices and default, and nothing finds one in what
// only looks like it.
func TestSignatures(t *testing.T) {
	t.Parallel()
	all := readFixtures(t)
	for _, s := range signatures() {
		f := all[s.id]
		if f == nil || len(f.yes) == 0 || len(f.no) == 0 {
			t.Errorf("%s has no fixture that it finds, or none that it does not find", s.id)
			continue
		}
		for name, output := range f.yes {
			found := Detect(at(output, s.sure == atEnd))
			if found == nil || found.Signature != s.id || found.Kind != s.kind {
				t.Errorf("%s, %s: %+v", s.id, name, found)
				continue
			}
			if *update {
				f.want[name] = said(found)
			}
			if diff := cmp.Diff(f.want[name], said(found)); diff != "" {
				t.Errorf("%s, %s: %s", s.id, name, diff)
			}
		}
		near := false
		inside := regexp.MustCompile(`(?m)` + strings.ReplaceAll(s.match.String(), "$", ""))
		for name, output := range f.no {
			near = near || s.where == onMenu || inside.MatchString(output)
			for _, exited := range []bool{false, true} {
				if found := Detect(at(output, exited)); found != nil {
					t.Errorf("%s, %s, exited %v: %+v", s.id, name, exited, found)
				}
			}
		}
		if !near {
			t.Errorf("%s: none of the outputs that it must not find resembles its prompt", s.id)
		}
		if *update {
			f.write(t)
		}
	}
	if len(all) != len(signatures()) {
		t.Errorf("%d archives for %d signatures", len(all), len(signatures()))
	}
}

func (f *fixtures) write(t *testing.T) {
	t.Helper()
	for i, entry := range f.archive.Files {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(entry.Name, "yes/"), ".want"); ok {
			f.archive.Files[i].Data = []byte(f.want[name])
		}
	}
	if err := os.WriteFile(f.file, txtar.Format(f.archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestEachSignatureIsNeeded: without a signature, one of its prompts is found by no other, or taken for something else.
func TestEachSignatureIsNeeded(t *testing.T) {
	t.Parallel()
	all := readFixtures(t)
	ids := map[string]bool{}
	for i, s := range signatures() {
		if ids[s.id] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(s.id) {
			t.Errorf("%q is taken, or not lower-case words", s.id)
		}
		ids[s.id] = true
		rest := slices.Delete(slices.Clone(signatures()), i, i+1)
		needed := false
		for _, output := range all[s.id].yes {
			found := detect(at(output, s.sure == atEnd), rest)
			needed = needed || found == nil || found.Kind != s.kind
		}
		if !needed {
			t.Errorf("%s can be removed: the others find the same", s.id)
		}
	}
}
