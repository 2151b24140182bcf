package fsapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniagent/internal/sys/fsapi"
	"omniagent/internal/sys/workspace"
)

type wanted struct{ Code, Message string }

// vectors were observed on seed 2's own implementation.
type vectors struct {
	Commands []struct {
		Command, Result string
		Error           *wanted
	} `json:"command_safety"`
	Paths struct {
		Root  string
		Cases []struct {
			Path, Result string
			Error        *wanted
		}
	} `json:"path_safety"`
	Read struct {
		Files map[string]string
		Cases []struct {
			File    string
			Options struct{ StartLine, EndLine, MaxBytes int }
			Content string
			Error   *wanted
		}
	} `json:"fs_read"`
	Edit []struct {
		Before string
		Edit   struct {
			Action, NewText, Find, Replace string
			InsertAfter                    int
			Range                          [2]int
		}
		Action, After string
		Error         *wanted
	} `json:"fs_edit"`
}

func readVectors(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// is reports whether err is the one that a vector has, whose reason may have more detail here.
func (w *wanted) is(err error) bool {
	var e *fsapi.Error
	if w == nil || err == nil {
		return w == nil && err == nil
	}
	return errors.As(err, &e) && errors.Is(err, fsapi.Code(w.Code)) && e.Message == w.Message
}

// desk is a root with a neighbour.
func desk(t *testing.T, run fsapi.Run) (fs *fsapi.Local, root string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root = filepath.Join(top, "ws")
	for _, name := range []string{"ws", "wsx", "ws2"} {
		if err := os.Mkdir(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := workspace.OpenDir(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return fsapi.New(dir, run), root
}

// TestCommandSafety: rm with its flags in another order is blocked as well, and text about rm in quotes.
func TestCommandSafety(t *testing.T) {
	t.Parallel()
	for _, c := range readVectors(t).Commands {
		if c.Command == "rm -fr /" {
			c.Error = &wanted{"CommandBlocked", "Command blocked for safety"}
		}
		got, err := fsapi.CheckCommand(c.Command)
		if !c.Error.is(err) || err == nil && got != c.Result {
			t.Errorf("%q: %q, %v", c.Command, got, err)
		}
	}
	for command, blocked := range map[string]bool{
		"rm -r -f /": true, "rm --recursive --force /": true, "rm -r /": true, "rm -v -rf x": true,
		`echo "rm -rf /"`: true, `bash -c "rm -fr x"`: true, `echo "please reboot"`: true, "SUDO id": true,
		"rm x": false, "rm -f x": false, "echo rm": false, "git rm --cached x": false, "git rm -r --cached x": false,
		"rm x; ls -r": false, "rm -- -r": false,
		"/bin/rm x -r": true, "echo $(rm -R x)": true, "rm --rec x": true, "ls 'farm -rf'": false,
	} {
		if _, err := fsapi.CheckCommand(command); errors.Is(err, fsapi.CommandBlocked) != blocked {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestPathSafety(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the table is of paths with slashes")
	}
	v := readVectors(t).Paths
	fs, root := desk(t, nil)
	here := func(path string) string {
		if rest, ok := strings.CutPrefix(path, v.Root); ok {
			return root + rest
		}
		return path
	}
	for _, c := range v.Cases {
		got, err := fs.Resolve(here(c.Path))
		if !c.Error.is(err) || err == nil && got != here(c.Result) {
			t.Errorf("%q: %q, %v", c.Path, got, err)
		}
	}
	for path, want := range map[string]string{"../ws": root, "~/x": filepath.Join(root, "~", "x")} {
		if got, err := fs.Resolve(path); err != nil || got != want {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

// TestLinks: a link that leads outside is refused by every method, and nothing behind it changes.
func TestLinks(t *testing.T) {
	t.Parallel()
	fs, root := desk(t, nil)
	outside := filepath.Join(filepath.Dir(root), "wsx")
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Skip("no links here: ", err)
	}
	if err := os.WriteFile(filepath.Join(outside, "x"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, resolved := fs.Resolve("link/x")
	_, read := fs.ReadFile("link/x", fsapi.Window{})
	_, written := fs.WriteFile("link/new", "y", "")
	_, edited := fs.EditText("link/x", fsapi.Edit{Action: fsapi.Replace, Find: "secret"})
	_, listed := fs.ListDir("link")
	for i, err := range []error{resolved, read, written, edited, listed} {
		if !errors.Is(err, fsapi.OutsideWorkspace) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if found, _ := os.ReadDir(outside); len(found) != 1 {
		t.Errorf("%v", found)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	v := readVectors(t).Read
	fs, root := desk(t, nil)
	for name, text := range v.Files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range v.Cases {
		o := c.Options
		got, err := fs.ReadFile(c.File, fsapi.Window{Start: o.StartLine, End: o.EndLine, MaxBytes: o.MaxBytes})
		if !c.Error.is(err) || got != c.Content {
			t.Errorf("%s %+v: %q, %v", c.File, o, got, err)
		}
	}
	if got, err := fs.ReadFile("u.txt", fsapi.Window{MaxBytes: 2}); err != nil || got != "h" {
		t.Errorf("a character is cut: %q, %v", got, err)
	}
	_ = os.WriteFile(filepath.Join(root, "program"), []byte("\x7fELF\x00"), 0o600)
	if _, err := fs.ReadFile("program", fsapi.Window{}); !errors.Is(err, fsapi.IOError) {
		t.Error(err)
	}
}

// TestEdit: the text that takes the place of another is taken as it is written.
func TestEdit(t *testing.T) {
	t.Parallel()
	fs, root := desk(t, nil)
	path := filepath.Join(root, "f")
	for _, c := range readVectors(t).Edit {
		if err := os.WriteFile(path, []byte(c.Before), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Edit.Replace == "$&$&" {
			c.After = "price $&$&"
		}
		if c.Error != nil {
			c.After = c.Before
		}
		change, err := fs.EditText("f", fsapi.Edit{
			Action: c.Edit.Action, After: c.Edit.InsertAfter, NewText: c.Edit.NewText, Find: c.Edit.Find,
			Replace: c.Edit.Replace, Start: c.Edit.Range[0], End: c.Edit.Range[1],
		})
		got, _ := os.ReadFile(path)
		if !c.Error.is(err) || string(got) != c.After {
			t.Errorf("%+v: %q, %v", c.Edit, got, err)
		}
		if c.Edit.Find == "zz" && change.Hits != 0 {
			t.Errorf("%+v", change)
		}
	}
	if _, err := fs.EditText("none", fsapi.Edit{Action: fsapi.Replace}); !errors.Is(err, fsapi.NotFound) {
		t.Error(err)
	}
	if _, err := fs.EditText("f", fsapi.Edit{Action: "move"}); !errors.Is(err, fsapi.InvalidPath) {
		t.Error(err)
	}
}

func TestWriteAndList(t *testing.T) {
	t.Parallel()
	fs, _ := desk(t, nil)
	if c, err := fs.WriteFile("a/b.txt", "one\n", ""); err != nil || c.Old != nil || c.New != "one\n" {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := fs.WriteFile("a/b.txt", "two\n", fsapi.Append); err != nil || *c.Old != "one\n" ||
		c.New != "one\ntwo\n" {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := fs.WriteFile("a/b.txt", "", "move"); !errors.Is(err, fsapi.InvalidPath) {
		t.Error(err)
	}
	if found, err := fs.ListDir("a"); err != nil || len(found) != 1 || found[0] != (fsapi.Entry{Name: "b.txt"}) {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := fs.ListDir("none"); !errors.Is(err, fsapi.NotFound) {
		t.Error(err)
	}
	if _, err := fs.WriteFile("a", "x", ""); !errors.Is(err, fsapi.IOError) {
		t.Error(err)
	}
}

// TestRun: a blocked command does not reach the runner, and any other does as it is, without the blanks around it.
func TestRun(t *testing.T) {
	t.Parallel()
	var ran []string
	fs, _ := desk(t, func(_ context.Context, c fsapi.Command) (fsapi.Output, error) {
		ran = append(ran, c.Line)
		return fsapi.Output{Stdout: "out", Stderr: "err", ExitCode: 3}, nil
	})
	out, err := fs.RunCommand(t.Context(), fsapi.Command{Line: " ls -la "})
	if err != nil || out.Stdout != "out" || out.Stderr != "err" || out.ExitCode != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := fs.RunCommand(t.Context(), fsapi.Command{Line: "sudo ls"}); !errors.Is(err, fsapi.CommandBlocked) {
		t.Error(err)
	}
	if len(ran) != 1 || ran[0] != "ls -la" {
		t.Errorf("%q", ran)
	}
	none, _ := desk(t, nil)
	if _, err := none.RunCommand(t.Context(), fsapi.Command{Line: "ls"}); !errors.Is(err, fsapi.IOError) {
		t.Error(err)
	}
}
