package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	maxManifest = 1 << 20 // bytes of a package.json; those of the five agents have less than 2 KiB
	maxVersion  = 64
)

// version returns the version of the program at real, or "". It reads it from the nearest package.json above it that
// belongs to the agent. It skips others, because bundles contain their own.
func (p Program) version(real string) string {
	from := real
	if target := shimTarget(real); target != "" {
		from = target
	}
	for dir := range Upward(filepath.Dir(from)) {
		if name, version, ok := Manifest(dir); ok && p.owns(name) {
			return plain(version)
		}
	}
	return ""
}

// owns reports whether the package is the agent's, or contains its executable for one platform. The platform has to
// match fully, because a name with the same beginning may be another product, such as an SDK.
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

// isPlatform recognises the forms that the five packages use: linux-x64, linuxmusl-arm64, windows-x64-baseline-musl.
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
	// A package variable would slow down every start of the program.
	if !regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`).MatchString(version) {
		return ""
	}
	return version
}

// Manifest reads the name and the version from the package.json of a directory. It reports false if it cannot parse it.
func Manifest(dir string) (name, version string, ok bool) {
	data, whole := Head(filepath.Join(dir, "package.json"), maxManifest)
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
