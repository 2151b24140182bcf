//go:build unix

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"omniagent/internal/core/event"
)

// attempt is a call of a file tool.
type attempt struct {
	name string
	make func(*Env) Tool
	in   object
}

// attempts are calls of every file tool on one path; it is taken for a file by some and for a directory by others.
func attempts(path string) []attempt {
	return []attempt{
		{"Read", Read, object{"file_path": path}},
		{"Write", Write, object{"file_path": path, "content": "ours"}},
		{"Write beneath", Write, object{"file_path": path + "/new/file", "content": "ours"}},
		{"Edit", Edit, object{"file_path": path, "old_string": "word", "new_string": "ours"}},
		{"Edit new", Edit, object{"file_path": path, "old_string": "", "new_string": "ours"}},
		{
			"MultiEdit", MultiEdit,
			object{"file_path": path, "edits": []object{{"old_string": "word", "new_string": "ours"}}},
		},
		{"NotebookEdit", NotebookEdit, object{"notebook_path": path + ".ipynb", "cell_id": "0", "new_source": "ours"}},
		{"NotebookEdit beneath", NotebookEdit, object{
			"notebook_path": path + "/book.ipynb", "cell_id": "0",
			"new_source": "ours",
		}},
		{"Grep", Grep, object{"path": path, "pattern": "CANARY|word"}},
		{"Grep wide", Grep, object{"path": path, "pattern": "CANARY|word", "multiline": true, "-C": 2}},
		{"Glob", Glob, object{"path": path, "pattern": "**"}},
		{"Glob named", Glob, object{"pattern": globText(path) + "/**"}},
		{"LS", LS, object{"path": path}},
	}
}

// globText is a path as a pattern that means only it.
func globText(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(path)
}

// within runs a call and holds that it ends.
func (d *desk) within(a attempt) Result {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	raw, err := json.Marshal(a.in)
	check(d.t, err)
	action, err := a.make(d.env).Plan(raw)
	if err != nil {
		return failed(err)
	}
	ended := make(chan Result, 1)
	go func() { ended <- action.Run(ctx) }()
	select {
	case r := <-ended:
		if ctx.Err() != nil {
			d.t.Errorf("%s of %v was still at work after 10 s", a.name, a.in)
		}
		return r
	case <-time.After(15 * time.Second):
		d.t.Fatalf("%s of %v does not end", a.name, a.in)
		return Result{}
	}
}

// outsideTree fills the directory outside of a desk with what a tool would find there.
func (d *desk) outsideTree() string {
	d.t.Helper()
	out := filepath.Join(d.top, "out")
	book := strings.Replace(raceBook, "x = 1", "CANARY", 1)
	for _, name := range []string{
		"out/file", "out/sub/file", "in-evil/file", "out/book.ipynb", "in-evil/book.ipynb",
		"out/file.ipynb",
	} {
		content := "CANARY word\n"
		if strings.HasSuffix(name, ".ipynb") {
			content = book
		}
		path := filepath.Join(d.top, name)
		check(d.t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(d.t, os.WriteFile(path, []byte(content), 0o644))
	}
	return out
}

const raceBook = `{"cells":[{"cell_type":"code","id":"c1","metadata":{},"outputs":[],"source":["x = 1"]}],"metadata":{},"nbformat":4,"nbformat_minor":5}`

// listed is a tree with its content and times, as text.
func (d *desk) listed(roots ...string) string {
	d.t.Helper()
	var b strings.Builder
	for _, root := range roots {
		check(d.t, filepath.Walk(filepath.Join(d.top, root), func(path string, info os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			data := []byte(nil)
			if info.Mode().IsRegular() {
				data, err = os.ReadFile(path)
			}
			fmt.Fprintf(&b, "%s %v %v %q\n", path, info.Mode(), info.ModTime(), data)
			return err
		}))
	}
	return b.String()
}

// TestNoPathLeadsOutside gives every tool every path that could.
func TestNoPathLeadsOutside(t *testing.T) {
	d := newDesk(t)
	out := d.outsideTree()
	d.put("sub/file", "word\n")
	for name, to := range map[string]string{
		"link": "../out", "link-absolute": out, "file-link": "../out/file", "chain": "link/sub", "sub/up": "../../out",
		"twin": "../in-evil",
		"root": "/", "proc": "/proc/self/root" + out, "fd": "/proc/self/fd", "dangling": "../out/none", "loop": "loop",
		"book.ipynb":      "../out/book.ipynb",
		"file-link.ipynb": out + "/book.ipynb", "self": "/proc/self/cwd", "dots": "sub/../../out", "dev": "/dev/stdin",
	} {
		check(t, os.Symlink(to, filepath.Join(d.in, name)))
	}
	secret, err := os.Open(filepath.Join(out, "file"))
	check(t, err)
	defer secret.Close()
	dir, err := os.Open(out)
	check(t, err)
	defer dir.Close()
	paths := []string{
		out, out + "/file", "..", "../out", "../out/file", "/", "/etc/passwd", d.in + "-evil", d.in +
			"-evil/file", "../in-evil/file", "sub/../../out/file",
		"link", "link/", "link/file", "link/.", "link/sub/..", "link//sub", "link-absolute/file", "file-link",
		"chain/file", "sub/up/file", "twin/file",
		"root" + out + "/file", "proc/file", fmt.Sprintf("fd/%d", secret.Fd()), fmt.Sprintf("fd/%d/file",
			dir.Fd()), "dangling", "dangling/x", "loop", "loop/x",
		"dots/file", "dev", "self", "link/new", "/proc/self/root" + out +
			"/file", "/proc/self/cwd/../../../../../../../.." + out + "/file",
		fmt.Sprintf("/proc/self/fd/%d", secret.Fd()), fmt.Sprintf("/dev/fd/%d/file", dir.Fd()), "/dev/zero", "/dev/tty",
		"file\x00", "a/\x00/../../out",
		strings.Repeat("../", 1000) + strings.TrimPrefix(out, "/") + "/file", strings.Repeat("sub/../", 100) +
			"../out/file",
		strings.Repeat("x", 300), strings.Repeat("x/", 3000), strings.Repeat("link/", 900), "  ../out/file  ", "\t",
		"~/../../out", `..\out\file`,
	}
	before := d.listed("out", "in-evil")
	for _, path := range paths {
		for _, a := range attempts(path) {
			r := d.within(a)
			if strings.Contains(r.Text, "CANARY") || strings.Contains(r.Text, "root:") {
				t.Errorf("%s of %q shows what lies outside: %s", a.name, clip(path), clip(r.Text))
			}
			ours := strings.HasPrefix(path, "~") || strings.HasPrefix(path, `..\`) // a file of that name
			if !r.Failed && !ours && a.name != "Glob named" {
				t.Errorf("%s of %q did not fail: %s", a.name, clip(path), clip(r.Text))
			}
		}
	}
	if after := d.listed("out", "in-evil"); after != before {
		t.Errorf("the outside was\n%s\nand is\n%s", before, after)
	}
}

// TestWhoDecidesSeesWhatIsMeant: a link to a file that git runs later does not look like a document.
func TestWhoDecidesSeesWhatIsMeant(t *testing.T) {
	d := newDesk(t)
	d.put(".git/hooks/run.ipynb", raceBook)
	check(t, os.Symlink(".git/hooks", filepath.Join(d.in, "docs")))
	d.put("plain/file", "word")
	for _, a := range attempts("docs/run") {
		raw, err := json.Marshal(a.in)
		check(t, err)
		action, err := a.make(d.env).Plan(raw)
		check(t, err)
		if !action.Changes {
			continue
		}
		if !slices.ContainsFunc(action.Paths, func(p string) bool { return strings.HasPrefix(p, ".git/hooks/run") }) ||
			!strings.HasPrefix(action.Paths[0], "docs/run") {
			t.Errorf("%s is about %v", a.name, action.Paths)
		}
		// What is decided about and what is done are one: the link leads elsewhere now.
		check(t, os.Remove(filepath.Join(d.in, "docs")))
		check(t, os.Symlink("plain", filepath.Join(d.in, "docs")))
		if r := action.Run(context.Background()); !r.Failed {
			t.Errorf("%s wrote through a link that had moved: %s", a.name, r.Text)
		}
		check(t, os.Remove(filepath.Join(d.in, "docs")))
		check(t, os.Symlink(".git/hooks", filepath.Join(d.in, "docs")))
	}
	if entries, err := os.ReadDir(filepath.Join(d.in, "plain")); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v", entries, err)
	}
	action, err := Write(d.env).Plan(json.RawMessage(`{"file_path": "plain/file", "content": ""}`))
	if err != nil || len(action.Paths) != 1 || action.Kind != event.Write {
		t.Errorf("got %v, %v", action.Paths, err)
	}
}

// TestNamesInAnswersMoveNothing has files whose names hold what a terminal obeys, and looks at every title and every
// answer.
func TestNamesInAnswersMoveNothing(t *testing.T) {
	d := newDesk(t)
	names := []string{
		"\x1b[2J\x1b]0;owned\x07", "a\nb", "cr\rover", "gpj\u202egnp", "c1\u009b31m", "\xff\xfe",
		"line\u2028sep", "del\x7f", "bom\ufeff", "osc\x1b]52;c;QQ==\x07",
	}
	for _, name := range names {
		path := filepath.Join(d.in, "odd", name)
		check(t, os.MkdirAll(path, 0o755))
		if err := os.WriteFile(filepath.Join(path, name), []byte("word\n"), 0o644); err != nil {
			t.Skipf("no such names here: %v", err)
		}
		check(t, os.WriteFile(path+".ipynb", []byte(raceBook), 0o644))
		check(t, os.Symlink("../../out", filepath.Join(path, "link"+name)))
	}
	fit := func(what, s string) {
		t.Helper()
		odd := strings.ContainsFunc(s, func(r rune) bool {
			return r != '\n' && r != '\t' &&
				(r < ' ' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("\u202e\u2028\ufeff", r))
		})
		if odd || !utf8.ValidString(s) {
			t.Errorf("%s: %q", what, s)
		}
	}
	for _, call := range []attempt{
		{"LS", LS, object{"path": "odd"}},
		{"Glob", Glob, object{"pattern": "**"}},
		{"Grep", Grep, object{"pattern": "word"}},
		{"Grep", Grep, object{"pattern": "word", "output_mode": "count"}},
		{"Grep", Grep, object{"pattern": "word", "output_mode": "files_with_matches"}},
	} {
		r := d.within(call)
		if fit(call.name, r.Text); r.Failed || !strings.Contains(r.Text, `a\nb`) || strings.Contains(r.Text, "a\nb") {
			t.Errorf("%s: %q", call.name, r.Text)
		}
	}
	for _, name := range names {
		for _, path := range []string{
			"odd/" + name, "odd/" + name + "/" + name, "odd/" + name + "/none" + name,
			"odd/" + name + "/link" + name, "/none/" + name, name + "\x00",
		} {
			for _, a := range attempts(path) {
				raw, err := json.Marshal(a.in)
				check(t, err)
				action, err := a.make(d.env).Plan(raw)
				if err != nil {
					fit(a.name, failed(err).Text)
					fit(a.name, err.Error())
					continue
				}
				if fit(a.name, action.Title); strings.ContainsAny(action.Title, "\n\t") {
					t.Errorf("%s: the title %q has several lines", a.name, action.Title)
				}
				r := action.Run(context.Background())
				fit(a.name, r.Text)
			}
		}
	}
}

// TestWhatIsNoFileHoldsNobodyUp: sockets, and FIFOs with and without somebody at the other end.
func TestWhatIsNoFileHoldsNobodyUp(t *testing.T) {
	d := newDesk(t)
	t.Chdir(d.in) // the address of a socket is short
	socket, err := net.Listen("unix", "socket")
	check(t, err)
	defer socket.Close()
	for _, name := range []string{"fifo", "busy", "busy.ipynb"} {
		check(t, syscall.Mkfifo(name, 0o600))
	}
	busy, err := os.OpenFile("busy", os.O_RDWR, 0)
	check(t, err)
	defer busy.Close()
	_, err = io.WriteString(busy, "CANARY word\n")
	check(t, err)
	for name, to := range map[string]string{"to-fifo": "fifo", "to-socket": d.in + "/socket", "to-busy": "busy"} {
		check(t, os.Symlink(to, name))
	}
	for _, path := range []string{"socket", "fifo", "busy", "to-fifo", "to-socket", "to-busy"} {
		for _, a := range attempts(path) {
			if r := d.within(a); strings.Contains(r.Text, "CANARY") || !r.Failed && a.name != "Glob named" {
				t.Errorf("%s of %s: %+v", a.name, path, r)
			}
		}
	}
	if r := d.within(attempt{"Grep", Grep, object{"pattern": "word"}}); r.Failed || r.Text != "No matches found" {
		t.Errorf("%+v", r)
	}
}

// TestAHoleOfATerabyte: a terabyte of zeros is not read.
func TestAHoleOfATerabyte(t *testing.T) {
	d := newDesk(t)
	for name, head := range map[string]string{
		"hole": "", "text": "word\n", "long": strings.Repeat("word ", 20_000),
		"book.ipynb": raceBook, "long.ipynb": raceBook,
	} {
		d.put(name, head)
		if err := os.Truncate(filepath.Join(d.in, name), 1<<40); err != nil {
			t.Skipf("no such file can be made here: %v", err)
		}
	}
	for _, path := range []string{"hole", "long", "book"} {
		for _, a := range attempts(path) {
			if a.make(d.env).Name == "Write" || a.name == "Grep" || a.name == "Grep wide" {
				continue
			}
			if r := d.within(a); len(r.Text) > 1<<20 {
				t.Errorf("%s of %s: %d bytes", a.name, path, len(r.Text))
			}
		}
	}
	d.says(Read, object{"file_path": "long"}, "[the line is cut here; it has more than 67108864 bytes]")
	d.fails(Read, object{"file_path": "long", "offset": 2}, "line 1 of long is longer than 64 MB")
	d.says(Grep, object{"pattern": "word", "path": "."}, "No matches found") // a file with zeros is binary
	d.says(Write, object{"file_path": "hole", "content": "ours"})
	d.holds("hole", "ours")
}

// TestAFileThatGrowsAndShrinks while every tool works on it: each ends, and none makes of it what nobody wrote.
func TestAFileThatGrowsAndShrinks(t *testing.T) {
	d := newDesk(t)
	d.put("file", "word\n")
	path := filepath.Join(d.in, "file")
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		line := []byte("word " + strings.Repeat("x", 94) + "\n")
		for n := 1; ; n++ {
			select {
			case <-end:
				return
			default:
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			if err != nil {
				continue
			}
			_, _ = f.Write(bytes.Repeat(line, 500))
			if n%10 == 0 {
				_ = f.Truncate(int64(n % 3 * 100))
			}
			_ = f.Close()
		}
	}()
	for range 10 {
		for _, a := range attempts("file") {
			if strings.HasPrefix(a.name, "Write") {
				continue
			}
			if r := d.within(a); len(r.Text) > 2<<20 {
				t.Errorf("%s: %d bytes", a.name, len(r.Text))
			}
		}
	}
	close(end)
	<-ended
	if left, err := filepath.Glob(filepath.Join(d.in, ".omniagent-tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestHardLinksOutside: a file that somebody has linked into the workspace is replaced here and stays as it is there.
func TestHardLinksOutside(t *testing.T) {
	for i, a := range attempts("hard") {
		d := newDesk(t)
		out := d.outsideTree()
		for _, name := range []string{"file", "book.ipynb"} {
			check(t, os.Chmod(filepath.Join(out, name), 0o755|os.ModeSetuid))
		}
		check(t, os.Link(filepath.Join(out, "file"), filepath.Join(d.in, "hard")))
		check(t, os.Link(filepath.Join(out, "book.ipynb"), filepath.Join(d.in, "hard.ipynb")))
		before := d.listed("out")
		if r := d.within(a); r.Failed != slices.Contains([]int{2, 4, 7, 10, 12}, i) {
			t.Errorf("%s: %+v", a.name, r)
		}
		if after := d.listed("out"); after != before {
			t.Errorf("%s: the outside was\n%s\nand is\n%s", a.name, before, after)
		}
		for _, name := range []string{"hard", "hard.ipynb"} {
			info, err := os.Stat(filepath.Join(d.in, name))
			check(t, err)
			links := info.Sys().(*syscall.Stat_t).Nlink
			if links == 1 && info.Mode()&os.ModeSetuid != 0 {
				t.Errorf("%s made a program of its own content that runs as another: %v", a.name, info.Mode())
			}
		}
	}
}

// TestWhatARuleSaysOutside is not learnt through links: only the directories that really lead to the workspace have a
// say.
func TestWhatARuleSaysOutside(t *testing.T) {
	d := newDesk(t)
	out := d.outsideTree()
	check(t, os.WriteFile(filepath.Join(out, "exclude"), []byte("hidden\n"), 0o644))
	check(t, os.WriteFile(filepath.Join(out, ".ignore"), []byte("hidden\n"), 0o644))
	d.put("repo/sub/hidden", "word\n")
	check(t, os.Mkdir(filepath.Join(d.in, "repo", ".git"), 0o755))
	for name, to := range map[string]string{
		"repo/.git/info": out, "repo/.ignore": filepath.Join(out, ".ignore"),
		"repo/sub/.ignore": "../../../out/.ignore",
	} {
		check(t, os.Symlink(to, filepath.Join(d.in, name)))
	}
	for _, path := range []string{"repo", "repo/sub"} {
		d.says(Grep, object{"pattern": "word", "path": path}, "hidden:1:word")
		d.says(Glob, object{"pattern": "**", "path": path}, "hidden")
	}
	if _, err := os.Stat(filepath.Join(d.in, "repo", ".git", "info", "exclude")); errors.Is(err, os.ErrNotExist) {
		t.Fatal("the link leads nowhere")
	}
}
