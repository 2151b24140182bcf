package allow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"omniagent/internal/sys/workspace"
)

// File identifies one file of a program. At least one of the members after the hash changes when the file is written or
// replaced.
type File struct {
	Path    string `json:"path"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Changed int64  `json:"changed" doc:"nanoseconds since 1970"`
	Status  int64  `json:"status_changed" doc:"nanoseconds since 1970"`
}

// Fingerprint returns the files of a program and their hashes. For an npm package, these are package.json, the script,
// and the large files, which contain the real program.
func Fingerprint(real string) ([]File, error) {
	list := []File{}
	for _, path := range files(real) {
		f, err := Digest(path)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// SameFiles reports whether the program at the path real has the same content as before.
func SameFiles(was []File, real string) bool {
	return len(was) > 0 && was[0].Path == real && !slices.ContainsFunc(was, func(f File) bool {
		_, same := f.Again()
		return !same
	})
}

// Again reports whether the file has the same content as before. If so, now has its present times.
func (f File) Again() (now File, same bool) {
	now, err := look(f.Path)
	if err != nil || now.Size != f.Size {
		return f, false
	}
	if now.SHA256 = f.SHA256; now == f {
		return f, true
	}
	now, err = Digest(f.Path)
	return now, err == nil && now.SHA256 == f.SHA256
}

const (
	mostFiles   = 100
	mostEntries = 20_000
	largeFile   = 1 << 20
	maxManifest = 1 << 20
)

// files returns the program and, if it is a script, its package.json, the large files of its package, and those of its
// platform packages, which contain the real program. Small files change only together with package.json.
func files(real string) []string {
	list := []string{real}
	if !script(real) {
		return list
	}
	dir, m := packageOf(filepath.Dir(real))
	if dir == "" {
		return list
	}
	list = append(list, belonging(dir, real)...)
	for _, name := range slices.Sorted(maps.Keys(m.Platforms)) {
		for at := dir; ; at = filepath.Dir(at) {
			other := filepath.Join(at, "node_modules", filepath.FromSlash(name))
			if filepath.IsLocal(filepath.FromSlash(name)) && regular(filepath.Join(other, manifestFile)) {
				list = append(list, belonging(other, real)...)
				break
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return list[:min(len(list), mostFiles)]
}

const manifestFile = "package.json"

// manifest is the part of package.json that is read.
type manifest struct {
	Name      string            `json:"name"`
	Platforms map[string]string `json:"optionalDependencies"`
}

// packageOf returns the nearest package around a directory.
func packageOf(dir string) (string, manifest) {
	for {
		var m manifest
		if workspace.ReadJSON(filepath.Join(dir, manifestFile), maxManifest, &m) == nil && m.Name != "" {
			return dir, m
		}
		if dir == filepath.Dir(dir) {
			return "", manifest{}
		}
		dir = filepath.Dir(dir)
	}
}

// belonging returns package.json and the large files of the package in a directory, except for known.
func belonging(dir, known string) []string {
	list, seen := []string{filepath.Join(dir, manifestFile)}, 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if seen++; err != nil || seen > mostEntries || len(list) > mostFiles {
			return fs.SkipAll
		}
		if e.IsDir() {
			if e.Name() == "node_modules" {
				return fs.SkipDir
			}
			return nil
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && info.Size() > largeFile && path != known {
			list = append(list, path)
		}
		return nil
	})
	return list
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// script reports whether a file is a script.
func script(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".js", ".mjs", ".cjs", ".cmd", ".ps1":
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [2]byte
	_, err = io.ReadFull(f, head[:])
	return err == nil && bytes.Equal(head[:], []byte("#!"))
}

// Digest hashes a file of any size. It reads the status of the file first, so that Again detects a change in between.
func Digest(path string) (File, error) {
	file, err := look(path)
	if err != nil {
		return file, err
	}
	f, err := os.Open(path)
	if err != nil {
		return file, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return file, err
	}
	file.SHA256 = hex.EncodeToString(h.Sum(nil))
	if time.Since(time.Unix(0, file.Status)) < tick {
		file.Status = 0 // differs from every real time, so that Again reads the content
	}
	return file, nil
}

// tick is longer than the resolution of a file system's clock: if a file changed more recently, another change may
// leave all its times equal.
const tick = 50 * time.Millisecond

// look returns the status of a regular file, without its hash. It refuses other kinds of files, because opening them
// could block.
func look(path string) (File, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "hash", Path: path, Err: errors.ErrUnsupported}
	}
	if err != nil {
		return File{Path: path}, err
	}
	s := workspace.StatusOf(info)
	return File{
		Path: path, Size: s.Size, Device: s.Device, Inode: s.Inode, Changed: s.Modified, Status: s.Changed,
	}, nil
}
