package workspace

import (
	"errors"
	"io/fs"
	"os"
)

// Copy creates a file with the content of another one, and with its holes. It returns an error if the name is taken. On
// failure it leaves nothing.
func Copy(from, to string, perm fs.FileMode) error {
	in, err := os.OpenFile(from, os.O_RDONLY|openWithoutBlocking, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm|0o200)
	if err != nil {
		return err
	}
	if err = CopyContent(out, in); err == nil {
		err = out.Chmod(perm)
	}
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(to)
	}
	return err
}
