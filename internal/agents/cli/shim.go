package cli

import (
	"bytes"
	"path/filepath"
	"strings"
)

const maxShim = 16 << 10 // bytes; those of npm and pnpm are below 2 KiB

// shimTarget returns the file that a small script written by npm or pnpm starts, or "" if path is not such a script.
// npm on Windows, and pnpm everywhere, put such a script in PATH instead of a link. The package is above its target,
// not above the script.
//
// Both write the target in double quotes, relative to the directory of the script. Only node is written in the same
// way.
func shimTarget(path string) string {
	script, whole := Head(path, maxShim)
	if !whole || bytes.IndexByte(script, 0) >= 0 {
		return ""
	}
	var target string
	for part := range strings.SplitSeq(string(script), `"`) {
		for _, here := range []string{`%dp0%\`, `%~dp0\`, `$basedir/`} {
			if rest, ok := strings.CutPrefix(part, here); ok && !isNode(rest) && !strings.ContainsAny(rest, "\n%$") {
				target = rest
			}
		}
	}
	if target == "" {
		return ""
	}
	target = filepath.Join(filepath.Dir(path), filepath.FromSlash(strings.ReplaceAll(target, `\`, "/")))
	if real, err := filepath.EvalSymlinks(target); err == nil {
		return real
	}
	return ""
}

func isNode(rest string) bool {
	return rest == "node" || rest == "node.exe" || rest == "node$exe"
}
