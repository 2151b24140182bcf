package policy

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"omniagent/internal/kit/fault"
	"omniagent/internal/testkit/hermetic"
)

// TestPackageHosts: what package managers say and what a person configured counts, and nothing of the workspace.
func TestPackageHosts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this test are scripts for sh")
	}
	home, work, bin := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			hermetic.WriteProgram(path, []byte(text), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	write(bin+"/npm", "#!/bin/sh\necho https://npm.example.org/all/\ntest -e package.json && echo https://evil.example.org\n")
	write(work+"/package.json", "{}")
	write(bin+"/yarn", "#!/usr/bin/env node\n")
	write(work+"/bin/node", "#!/bin/sh\necho https://evil.example.org\n")
	write(bin+"/pip", "#!/bin/sh\necho https://pip$A_SECRET.example.org\n")
	t.Setenv("A_SECRET", "-evil")
	write(bin+"/go", "#!/bin/sh\necho 'https://go.example.org,direct'; echo sum.example.org\n")
	write(work+"/bin/gem", "#!/bin/sh\necho https://evil.example.org\n")
	write(work+"/.npmrc", "registry=https://evil.example.org/\n")
	write(home+"/.npmrc", "@a:registry=http://scope.example.org:8080/x\n//evil.example.org/:_authToken=x\n"+
		"homepage=https://evil.example.org\n# registry=https://evil.example.org\n")
	write(home+"/.m2/settings.xml",
		"<settings xmlns=\"http://evil.example.org\"><mirror>\n<url>https://maven.example.org/m</url>\n")
	t.Setenv("PIP_INDEX_URL", "https://user:word@pip.example.org:443/simple")
	t.Setenv("CARGO_REGISTRIES_OWN_INDEX", "sparse+https://cargo.example.org/")
	variables := map[string]string{
		"PATH": bin + ":" + work + "/bin", "PIP_INDEX_URL": os.Getenv("PIP_INDEX_URL"),
		"CARGO_REGISTRIES_OWN_INDEX": os.Getenv("CARGO_REGISTRIES_OWN_INDEX"),
	}
	w := Wanted{Root: work, Home: home, Network: "a.example.org,packages", Lookup: func(name string) (string, bool) {
		value, set := variables[name]
		return value, set
	}}
	got, err := w.hosts()
	want := []string{
		"a.example.org", "cargo.example.org", "go.example.org", "maven.example.org", "npm.example.org",
		"pip.example.org", "scope.example.org:8080", "sum.example.org",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	nothing := Wanted{Root: work, Home: work + "/none", Network: "packages"}
	if got, err := nothing.hosts(); !errors.Is(err, fault.ArgError) && len(got) == 0 {
		t.Errorf("%q, %v", got, err)
	}
}
