package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

const (
	maxManifest = 1 << 20 // bytes of a package.json; those of the five agents are below 2 KiB
	maxVersion  = 64
)

// version reads the version of the program at real from the nearest package.json above it that belongs to the agent. It
// skips others: bundles have their own, with or without a name.
func (p Program) version(real string) string {
	from := real
	if target := shimTarget(real); target != "" {
		from = target
	}
	for dir := filepath.Dir(from); ; dir = filepath.Dir(dir) {
		if name, version, ok := manifest(filepath.Join(dir, "package.json")); ok && p.owns(name) {
			return plain(version)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// owns reports whether the package is the agent's, or the one with its executable for one platform. The platform has to
// match fully because a name with the same beginning may be another product, such as an SDK.
func (p Program) owns(name string) bool {
	if name != "" && name == p.About.Package {
		return true
	}
	for _, base := range []string{p.About.Package, p.Native} {
		if rest, ok := strings.CutPrefix(name, base+"-"); base != "" && ok && isPlatform(rest) {
			return true
		}
	}
	return false
}

// isPlatform recognises linux-x64, linuxmusl-arm64, windows-x64-baseline-musl: the forms that the five packages use.
func isPlatform(s string) bool {
	parts := strings.Split(s, "-")
	if len(parts) < 2 ||
		!slices.Contains([]string{"linux", "linuxmusl", "darwin", "win32", "windows", "android", "freebsd"},
			parts[0]) ||
		!slices.Contains([]string{"x64", "arm64", "arm", "ia32"}, parts[1]) {
		return false
	}
	for _, variant := range parts[2:] {
		if !slices.Contains([]string{"musl", "baseline", "android"}, variant) {
			return false
		}
	}
	return true
}

// plain returns a valid version, without the platform that codex's executables append (0.169.0-linux-x64), or "". A
// valid version is safe to print on a terminal and to compare.
func plain(version string) string {
	if len(version) > maxVersion {
		return ""
	}
	for i := range len(version) {
		if version[i] == '-' && isPlatform(version[i+1:]) {
			version = version[:i]
			break
		}
	}
	// Compiled here, because a package variable would slow down every start of the program.
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return ""
	}
	return version
}

// Manifest reads the name and the version of the package in a directory.
func Manifest(dir string) (name, version string, ok bool) {
	return manifest(filepath.Join(dir, "package.json"))
}

// manifest reads the name and the version from a package.json. It ignores anything that it cannot parse.
func manifest(path string) (name, version string, ok bool) {
	data, whole := head(path, maxManifest)
	if !whole {
		return "", "", false
	}
	var m struct {
		Name    string `json:"name"`
		Version any    `json:"version"` // of any type, so that an odd version does not hide the name
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &m); err != nil {
		return "", "", false
	}
	version, _ = m.Version.(string)
	return m.Name, version, true
}

// head reads up to limit bytes of a regular file, and reports whether that is all of it. It does not open a pipe or a
// device: a pipe without a writer would block for ever. If one replaces the file after the check, O_NONBLOCK keeps the
// open from waiting.
func head(path string, limit int64) (data []byte, whole bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data = make([]byte, min(info.Size()+1, limit+1))
	n, err := io.ReadFull(f, data)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, false
	}
	data = data[:n]
	if int64(len(data)) > limit {
		return data[:limit], false
	}
	return data, true
}
