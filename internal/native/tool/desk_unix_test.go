//go:build unix

package tool

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestNoToolWaitsForAFIFO(t *testing.T) {
	d := newDesk(t)
	check(t, syscall.Mkfifo(filepath.Join(d.in, "fifo"), 0o600))
	check(t, syscall.Mkfifo(filepath.Join(d.in, "fifo.ipynb"), 0o600))
	const says = "a fifo where a file belongs"
	d.fails(Read, object{"file_path": "fifo"}, says)
	d.fails(Write, object{"file_path": "fifo", "content": "x"}, says)
	d.fails(Edit, object{"file_path": "fifo", "old_string": "x", "new_string": "y"}, says)
	d.fails(Edit, object{"file_path": "fifo", "old_string": "", "new_string": "y"}, says)
	d.fails(NotebookEdit, object{"notebook_path": "fifo.ipynb", "cell_id": "x", "new_source": "y"}, says)
	d.says(LS, object{}, "p          - fifo\n")
}

func TestADirectoryThatMayNotBeWritten(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may write everywhere")
	}
	d := newDesk(t)
	d.put("sub/a", "x")
	check(t, os.Chmod(filepath.Join(d.in, "sub"), 0o500))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(d.in, "sub"), 0o700) })
	d.fails(Write, object{"file_path": "sub/a", "content": "y"}, "cannot write sub/a", "permission denied")
	d.fails(Edit, object{"file_path": "sub/a", "old_string": "x", "new_string": "y"}, "permission denied")
	d.holds("sub/a", "x")
}
