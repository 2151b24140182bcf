package codex

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/setting"
	"omniagent/internal/testkit/hermetic"
)

// installed creates npm's layout: the package, and next to it or inside it the package with the executable.
func installed(t *testing.T, beneath bool, version, executableVersion string) (root string, in agent.Install) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("npm's script stays in front of the executable on Windows")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(root, "node_modules", "@openai", "codex")
	native := own + "-linux-x64"
	if beneath {
		native = filepath.Join(own, "node_modules", "@openai", "codex-linux-x64")
	}
	put(t, filepath.Join(own, "package.json"), `{"name":"@openai/codex","version":"`+version+`"}`)
	put(t, filepath.Join(own, "bin", "codex.js"), "#!/usr/bin/env node\n")
	put(t, filepath.Join(native, "package.json"), `{"name":"@openai/codex","version":"`+executableVersion+`"}`)
	put(t, filepath.Join(native, "vendor", "x86_64-unknown-linux-musl", "bin", "codex"), "\x7fELF")
	bin := filepath.Join(root, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(own, "bin", "codex.js"), filepath.Join(bin, "codex")); err != nil {
		t.Fatal(err)
	}
	in, err = New().Locate(agent.Env{
		Lookup: func(name string) (string, bool) { return bin, name == "PATH" },
		Dir:    root,
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, in
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := hermetic.WriteProgram(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestTheExecutableBehindTheScript(t *testing.T) {
	const tail = "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"
	for _, beneath := range []bool{false, true} {
		root, in := installed(t, beneath, "0.169.0", "0.169.0-linux-x64")
		want := root + "/node_modules/@openai/" + tail
		if beneath {
			want = root + "/node_modules/@openai/codex/node_modules/@openai/" + tail
		}
		if got := executable(in, "linux", "amd64"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, other := range [][2]string{
			{"linux", "arm64"},
			{"darwin", "amd64"},
			{"windows", "amd64"},
			{"linux", "riscv64"},
		} {
			if got := executable(in, other[0], other[1]); got != "" {
				t.Errorf("on %v: %q", other, got)
			}
		}
		if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" && in.Program != want {
			t.Errorf("located %q", in.Program)
		}
		in.Program = want
		launch, err := New().(driver).live(agent.Spec{
			Install: in, Env: []string{"CODEX_MANAGED_BY_PNPM=1"}, Mode: setting.OneShot, Dir: root,
		}, true)
		if err != nil || launch.Path != want || !slices.Equal(launch.Env, []string{
			"CODEX_MANAGED_PACKAGE_ROOT=" + root + "/node_modules/@openai/codex", "CODEX_MANAGED_BY_NPM=1",
		}) {
			t.Errorf("%v, %q %q", err, launch.Path, launch.Env)
		}
	}
}

func TestWhereTheScriptStays(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, root string, in *agent.Install){
		"another version": func(_ *testing.T, _ string, in *agent.Install) { in.Version = "0.170.0" },
		"no version":      func(_ *testing.T, _ string, in *agent.Install) { in.Version = "" },
		"pnpm": func(t *testing.T, root string, _ *agent.Install) {
			put(t, root+"/node_modules/.modules.yaml", "")
		},
		"another script": func(_ *testing.T, root string, in *agent.Install) { in.RealPath = root + "/bin/codex" },
		"another package": func(t *testing.T, root string, _ *agent.Install) {
			put(t, root+"/node_modules/@openai/codex/package.json", `{"name":"codex","version":"0.169.0"}`)
		},
		"not executable": func(t *testing.T, root string, _ *agent.Install) {
			if err := os.Chmod(root+"/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
				0o644); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, in := installed(t, false, "0.169.0", "0.169.0-linux-x64")
			spoil(t, root, &in)
			if got := executable(in, "linux", "amd64"); got != "" {
				t.Errorf("%q is started", got)
			}
		})
	}
	_, in := installed(t, false, "0.169.0", "0.168.0-linux-x64")
	if got := executable(in, "linux", "amd64"); got != "" {
		t.Errorf("%q, of another version, is started", got)
	}
	_, in = installed(t, false, "0.169.0", "0.169.0-linux-x64")
	in.Program = ""
	if launch, err := New().(driver).live(agent.Spec{Install: in, Mode: setting.OneShot}, true); err != nil ||
		launch.Path != in.Path {
		t.Errorf("%v, %q", err, launch.Path)
	}
}
