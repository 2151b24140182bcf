package codex

import (
	"path/filepath"
	"runtime"
	"slices"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

const pkg = "@openai/codex" // its package, and the first part of the names of the platforms' packages

// Locate finds the program, and the executable that npm's script would start. Starting it directly saves the start of
// Node, about 40 ms.
func (d driver) Locate(env agent.Env) (agent.Install, error) {
	in, err := d.Program.Locate(env)
	if err == nil {
		in.Program = executable(in, runtime.GOOS, runtime.GOARCH)
	}
	return in, err
}

// executable returns the program that the package's script would start on this machine, or "" if that is not certain.
// It looks where Node would: in the package's node_modules, then next to the package. The platform's package must have
// the same version. If another package manager installed Codex, we keep its script, which tells Codex about it.
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
		if !cli.Exists(dir) {
			continue
		}
		// If the first package found does not fit, leave the choice to the script.
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

// packageOf returns the directory of the package, if the program is its script.
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

// byNPM reports whether there is no sign of pnpm, bun or Vite+. It looks for all signs that the script looks for, and
// more.
func byNPM(own string) bool {
	for dir := range cli.Upward(own) {
		if slices.Contains([]string{".bun", ".pnpm", "packages"}, filepath.Base(dir)) ||
			cli.Exists(dir, ".modules.yaml") || cli.Exists(dir, "node_modules", ".modules.yaml") {
			return false
		}
	}
	return true
}

// managed returns the variables with which the script tells the executable how it was installed.
func managed(in agent.Install) []string {
	return []string{"CODEX_MANAGED_PACKAGE_ROOT=" + packageOf(in), "CODEX_MANAGED_BY_NPM=1"}
}

// managers returns the variables of other package managers.
func managers() []string {
	return []string{"CODEX_MANAGED_BY_BUN", "CODEX_MANAGED_BY_PNPM", "CODEX_MANAGED_BY_VITE_PLUS"}
}
