package claim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"omniagent/internal/core/event"
)

const (
	mostHashed = 64 << 20 // bytes of a file whose content is compared; of a larger one size and time are
	mostWalked = 10_000   // entries of a directory that are compared
)

// Fingerprint identifies what is at the paths that a call of a file tool says that it changes, made by an agent that
// works in a directory. It is "" for other calls, and for one that names no path.
func Fingerprint(c *event.Call, dir string) string {
	if c == nil || c.Kind != event.Write {
		return ""
	}
	all := Claims(event.FinishedCall{Call: *c}, dir)
	if len(all) == 0 {
		return ""
	}
	h := sha256.New()
	for _, one := range all {
		for _, path := range []string{one.Path, one.From} {
			fmt.Fprintf(h, "%q ", path)
			if path != "" {
				describe(h, path)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// describe writes what is at a path: the content of a file, or what a directory lists.
func describe(to io.Writer, path string) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		fmt.Fprint(to, "none\n")
	case info.IsDir():
		left := mostWalked
		_ = filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
			if left--; err != nil || left < 0 {
				return err
			}
			if info, err := d.Info(); err == nil && !d.IsDir() {
				fmt.Fprintf(to, "%q %v %d %d\n", name, info.Mode(), info.Size(), info.ModTime().UnixNano())
			}
			return nil
		})
	case info.Mode().IsRegular() && info.Size() <= mostHashed: // no pipe is opened
		f, err := os.Open(path)
		if err != nil {
			fmt.Fprint(to, "unreadable\n")
			return
		}
		defer f.Close()
		_, err = io.Copy(to, io.LimitReader(f, mostHashed+1))
		fmt.Fprint(to, " ", err == nil, "\n")
	default:
		fmt.Fprintf(to, "%v %d %d\n", info.Mode(), info.Size(), info.ModTime().UnixNano())
	}
}
