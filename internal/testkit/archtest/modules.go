package archtest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// dependenciesFile lists the modules that are linked into the programs of cmd. Each of them is code that users run and
// that starts up with ours, so a new one is a decision and shows in a diff.
const dependenciesFile = "internal/testkit/archtest/testdata/dependencies.txt"

// linked returns the modules that go into the programs of cmd on any platform.
func (t *tree) linked() ([]string, error) {
	var modules []string
	if _, err := os.Stat(filepath.Join(t.root, "cmd")); err != nil {
		return nil, nil // no program yet: the missing row or package is reported elsewhere
	}
	for _, goos := range []string{"linux", "darwin", "windows"} {
		out, err := t.goList([]string{"GOOS=" + goos, "GOARCH=amd64"}, "-e", "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/...")
		if err != nil {
			return nil, err
		}
		modules = append(modules, strings.Fields(out)...)
	}
	slices.Sort(modules)
	return slices.Compact(modules), nil
}

// Update writes the list of linked modules again.
func Update(root string) error {
	t, err := load(root)
	if err != nil {
		return err
	}
	modules, err := t.linked()
	if err != nil {
		return err
	}
	text := "# The modules linked into the programs of cmd, on all platforms together.\n" +
		"# After a change that was decided: go test ./internal/testkit/archtest -update\n"
	for _, module := range modules {
		text += module + "\n"
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(dependenciesFile)), []byte(text), 0o644)
}

// checkDependencies compares the list with what is linked.
func (t *tree) checkDependencies() error {
	text, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(dependenciesFile)))
	if err != nil {
		return err
	}
	var pinned []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			pinned = append(pinned, line)
		}
	}
	modules, err := t.linked()
	if err != nil {
		return err
	}
	for _, module := range modules {
		if !slices.Contains(pinned, module) {
			t.problem(dependenciesFile, "%s is linked into a program and not listed", module)
		}
	}
	for _, module := range pinned {
		if !slices.Contains(modules, module) {
			t.problem(dependenciesFile, "%s is listed and not linked into a program", module)
		}
	}
	return nil
}

// checkRequirements looks for direct requirements in go.mod whose line does not say why they are there.
func (t *tree) checkRequirements() error {
	text, err := os.ReadFile(filepath.Join(t.root, "go.mod"))
	if err != nil {
		return err
	}
	block := false
	for i, line := range strings.Split(string(text), "\n") {
		code, reason, _ := strings.Cut(line, "//")
		code, reason = strings.TrimSpace(code), strings.TrimSpace(reason)
		switch {
		case code == "require (":
			block = true
			continue
		case code == ")":
			block = false
		}
		single, isSingle := strings.CutPrefix(code, "require ")
		if isSingle {
			code = single
		}
		if code == "" || !block && !isSingle {
			continue
		}
		indirect := reason == "indirect" || strings.HasPrefix(reason, "indirect;")
		if !indirect && reason == "" {
			t.problem(fmt.Sprintf("go.mod:%d", i+1), "%s has no reason in its line: // why it is needed",
				strings.Fields(code)[0])
		}
	}
	return nil
}

// goList runs go list in the tree. Without cgo and paths, because that is how the program is built: what was compiled
// for that is not compiled again.
func (t *tree) goList(env []string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list", "-buildvcs=false", "-trimpath"}, args...)...)
	cmd.Dir = t.root
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	return stdout.String(), nil
}
