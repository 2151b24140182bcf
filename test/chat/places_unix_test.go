//go:build unix

package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFurtherDirectory: a conversation goes on in it. The name of one that does not exist changes nothing.
func TestAFurtherDirectory(t *testing.T) {
	t.Parallel()
	code := t.TempDir()
	shared := filepath.Join(code, "shared")
	p := newPlace(t, `[{"call":{"name":"Write","input":{"file_path":"`+shared+`/made","content":"x\n"}}},{"say":"Said."}]`)
	p.work = filepath.Join(code, "app")
	for _, dir := range []string{p.work, shared} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w := p.open("--approval", "yolo")
	w.await("test-model")
	w.enters("make it")
	w.await("lies outside")
	w.await("Said.")
	w.enters("/add-dir ../nothing")
	w.await("nothing was changed")
	w.enters("/add-dir ../shared")
	w.await("shared is open to native now")
	w.enters("make it")
	w.await("+x")
	w.await("changed without asking, where no undo reaches: " + shared + "/made")
	w.enters("make it")
	w.await("+0 -0")
	w.await("Said.")
	w.enters("/undo")
	w.await("There is no turn of this conversation")
	w.await("No undo reaches " + shared)
	w.enters("/status")
	w.await("open as well: " + shared)
	w.quits()
	if said := w.text(); strings.Contains(said, "/undo takes it back") || strings.Count(said, "where no undo") != 1 {
		t.Errorf("%s", said)
	}
	w = p.open("--add-dir", shared)
	w.await("It works in " + shared + " too.")
	w.quits()
	if _, err := os.Stat(filepath.Join(shared, "made")); err != nil {
		t.Error(err)
	}
}
