package codex

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
)

const pkg = "@openai/codex"

// Locate finds the program, and what the script that npm installs hands over to. To start that at once saves Node's own
// start, some 40 ms.
func (d driver) Locate(env agent.Env) (agent.Install, error) {
	in, err := d.Program.Locate(env)
	if err == nil {
		in.Program = executable(in, runtime.GOOS, runtime.GOARCH)
	}
	return in, err
}

// executable returns the program that the package's script would start on this machine, or "" if that is not certain.
// It looks where Node would: in the package's node_modules, then next to the package. The platform's package must have
// the same version. If another package manager installed Codex, its script is kept, because it tells Codex more.
func executable(in agent.Install, system, machine string) string {
	arch, platform := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[machine],
		map[string]string{"amd64": "x64", "arm64": "arm64"}[machine]
	triple := map[string]string{"linux": arch + "-unknown-linux-musl", "darwin": arch + "-apple-darwin"}[system]
	own := packageOf(in)
	if arch == "" || triple == "" || own == "" || !byNPM(own) {
		return ""
	}
	platform = system + "-" + platform
	for _, dir := range []string{filepath.Join(own, "node_modules", pkg+"-"+platform), own + "-" + platform} {
		if _, err := os.Lstat(dir); err != nil {
			continue
		}
		// What the script does beyond the first that is there, where that does not fit, is its own affair.
		if name, version, ok := cli.Manifest(dir); !ok || name != pkg || version != in.Version+"-"+platform {
			return ""
		}
		path, err := filepath.EvalSymlinks(filepath.Join(dir, "vendor", triple, "bin", "codex"))
		if err != nil || cli.Unfit(path) != "" {
			return ""
		}
		return path
	}
	return ""
}

// packageOf is the directory of the package if what was found is its script.
func packageOf(in agent.Install) string {
	bin := filepath.Dir(in.RealPath)
	own := filepath.Dir(bin)
	if in.Version == "" || filepath.Base(in.RealPath) != "codex.js" || filepath.Base(bin) != "bin" ||
		filepath.Base(own) != "codex" {
		return ""
	}
	if name, version, ok := cli.Manifest(own); !ok || name != pkg || version != in.Version {
		return ""
	}
	return own
}

// byNPM says whether nothing speaks for pnpm, bun or Vite+, by the marks that the script knows them by, and broader
// ones.
func byNPM(own string) bool {
	for dir := own; ; dir = filepath.Dir(dir) {
		if slices.Contains([]string{".bun", ".pnpm", "packages"}, filepath.Base(dir)) {
			return false
		}
		for _, mark := range []string{".modules.yaml", filepath.Join("node_modules", ".modules.yaml")} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return false
			}
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// managed is what the script would tell the executable of how it was installed.
func managed(in agent.Install) []string {
	return []string{"CODEX_MANAGED_PACKAGE_ROOT=" + packageOf(in), "CODEX_MANAGED_BY_NPM=1"}
}

// managers are the variables that would say otherwise.
func managers() []string {
	return []string{"CODEX_MANAGED_BY_BUN", "CODEX_MANAGED_BY_PNPM", "CODEX_MANAGED_BY_VITE_PLUS"}
}
