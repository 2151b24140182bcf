package workspace

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/pathname"
)

// longestName is Linux's limit for a path. Without a limit, a path of a million directories would be created one by
// one.
const longestName = 4096

// Name returns the name for a path that a model wrote: relative to the root, or absolute and inside the root or a
// further directory. `~` has no special meaning. `..` goes up by name, not from the target of a link. Blanks around the
// path are removed: write ./ a or a / for a file whose name begins or ends with one. The file need not exist.
//
// On Windows, and in a Windows drive mounted elsewhere, C:\x\y, /mnt/c/x/y and src\a have their meaning there.
// Elsewhere src\a is src/a, unless there is a file with exactly that name.
func (d *Dir) Name(written string) (string, error) {
	trimmed := strings.TrimSpace(written)
	if trimmed == "" || strings.ContainsRune(written, 0) || len(written) > longestName {
		return "", invalid(written)
	}
	p := spell(runtime.GOOS, d.path, trimmed)
	if p == "" {
		return "", d.outside(written)
	}
	if i := strings.LastIndexByte(p, '\\'); i >= 0 {
		literal := p
		if end := strings.IndexByte(p[i:], '/'); end >= 0 {
			literal = p[:i+end] // a new file in a directory with such a name
		}
		name, err := d.clean(written, literal)
		if err == nil {
			_, err = d.Lstat(name)
		}
		if err != nil {
			p = strings.ReplaceAll(p, `\`, "/")
		}
	}
	return d.clean(written, p)
}

// clean returns the name of p, which has the system's spelling. What .. means behind a link depends on the link.
func (d *Dir) clean(written, p string) (string, error) {
	full := p
	if !filepath.IsAbs(p) {
		full = d.path + string(filepath.Separator) + p
	}
	if at := lastUp(full); at > 0 {
		if real := pathname.Real(full[:at]); real != filepath.Clean(full[:at]) {
			return d.absolute(written, filepath.Join(real, full[at:]))
		}
	}
	if filepath.IsAbs(p) {
		return d.absolute(written, filepath.Clean(p))
	}
	p = filepath.Clean(p)
	switch {
	case p == ".." || strings.HasPrefix(p, ".."+string(filepath.Separator)):
		// It may leave the root and come back.
		return d.absolute(written, filepath.Join(d.path, p))
	case !filepath.IsLocal(p): // a Windows device, or a path with a drive
		return "", invalid(written)
	}
	return filepath.ToSlash(p), nil
}

// lastUp returns where a path goes on behind its last "..", or 0.
func lastUp(p string) int {
	const up = string(filepath.Separator) + ".."
	if strings.HasSuffix(p, up) {
		return len(p)
	}
	if i := strings.LastIndex(p, up+string(filepath.Separator)); i >= 0 {
		return i + len(up)
	}
	return 0
}

func (d *Dir) absolute(written, abs string) (string, error) {
	if rel, ok := d.under(abs); ok {
		if !filepath.IsLocal(filepath.FromSlash(rel)) {
			return "", invalid(written)
		}
		return rel, nil
	}
	for _, more := range d.roots {
		if rel, ok := more.under(abs); ok {
			if !filepath.IsLocal(filepath.FromSlash(rel)) {
				return "", invalid(written)
			}
			return more.outerName(rel), nil
		}
	}
	for _, dir := range d.readOnly {
		if _, ok := beneathPath(dir.path, abs, foldsCase(d.path)); ok {
			return filepath.ToSlash(abs), nil
		}
	}
	return "", d.outside(written)
}

// spell rewrites a path for the system goos and a workspace at root. It returns "" for a Windows path on a system
// without drives.
func spell(goos, root, written string) string {
	slashed := strings.ReplaceAll(written, `\`, "/")
	drive := len(slashed) >= 3 && isLetter(slashed[0]) && slashed[1] == ':' && slashed[2] == '/'
	switch {
	case goos == "windows":
		if mountedDrive(slashed) {
			return slashed[5:6] + ":/" + strings.TrimPrefix(slashed[6:], "/")
		}
		return slashed
	case mountedDrive(root):
		if drive {
			return path.Join("/mnt", strings.ToLower(slashed[:1]), slashed[3:])
		}
		return slashed
	case drive:
		return ""
	}
	return written
}

// mountedDrive reports whether p is in a Windows drive mounted by WSL, such as /mnt/c.
func mountedDrive(p string) bool {
	return len(p) >= 6 && strings.HasPrefix(p, "/mnt/") && isLetter(p[5]) && (len(p) == 6 || p[6] == '/')
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func invalid(written string) error {
	f := fault.New(fault.ArgError, "%q is not a valid path", printable(written))
	switch {
	case strings.TrimSpace(written) == "":
		f = fault.New(fault.ArgError, "the path is empty")
	case len(written) > longestName:
		f = fault.New(fault.ArgError, "a path of %d bytes is too long", len(written))
	}
	return reasoned(f.Hint("Give a path such as src/main.go."), written, "invalid")
}
