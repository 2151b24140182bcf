package packages

import (
	"bytes"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/measure"
)

func TestArchives(t *testing.T) {
	dir := built(t)
	t.Parallel()
	for _, target := range measure.Targets() {
		t.Run(target.OS+"-"+target.Arch, func(t *testing.T) {
			name := "omniagent-" + version + "-" + target.OS + "-" + target.Arch
			parts := entries(t, read(t, dir, name+".tar.gz"))
			program := name + "/omniagent"
			if target.OS == "windows" {
				program += ".exe"
			}
			if parts[program].Header == nil || parts[program].Mode != 0o755 {
				t.Fatalf("there is no program %s", program)
			}
			isFor(t, parts[program].data, target)
			want := []string{
				"LICENSE", "LICENSE-THIRD-PARTY", "CHANGELOG.md", "completions/_omniagent",
				"completions/omniagent.bash", "completions/omniagent.fish", "completions/omniagent.ps1",
				"man/man1/omniagent.1", "apparmor",
			}
			for _, c := range command.Program().Commands {
				want = append(want, "man/man1/omniagent-"+strings.ReplaceAll(c.Path, " ", "-")+".1")
			}
			for _, file := range want {
				if e := parts[name+"/"+file]; e.Header == nil || len(e.data) == 0 || e.Mode != 0o644 {
					t.Errorf("%s is missing, empty or a program", file)
				}
			}
			if others := string(parts[name+"/LICENSE-THIRD-PARTY"].data); !strings.Contains(others,
				"github.com/spf13/cobra v") || !strings.Contains(others, "Copyright 2009 The Go Authors") {
				t.Error("LICENSE-THIRD-PARTY does not name the library of Go and cobra")
			}
			if target != measure.Here() {
				return
			}
			p := newPlace(t)
			p.does(t, needs(t, "tar"), "-xzf", filepath.Join(dir, name+".tar.gz"), "-C", p.root)
			p.works(t, filepath.Join(p.root, filepath.FromSlash(program)))
		})
	}
}

// isFor holds that a program is one for a system, needs no library where that is promised, and does not tell where it
// was built.
func isFor(t *testing.T, program []byte, target measure.Target) {
	t.Helper()
	r := bytes.NewReader(program)
	machine, want := "", map[string]string{"amd64": "x86-64", "arm64": "arm64"}[target.Arch]
	switch target.OS {
	case "linux":
		f, err := elf.NewFile(r)
		must(t, err)
		machine = map[elf.Machine]string{elf.EM_X86_64: "x86-64", elf.EM_AARCH64: "arm64"}[f.Machine]
		for _, part := range f.Progs {
			if part.Type == elf.PT_INTERP || part.Type == elf.PT_DYNAMIC {
				t.Error("the program needs libraries")
			}
		}
	case "darwin":
		f, err := macho.NewFile(r)
		must(t, err)
		machine = map[macho.Cpu]string{macho.CpuAmd64: "x86-64", macho.CpuArm64: "arm64"}[f.Cpu]
		signed := false
		for _, part := range f.Loads {
			const signature = 0x1d // LC_CODE_SIGNATURE
			signed = signed || binary.LittleEndian.Uint32(part.Raw()) == signature
		}
		if target.Arch == "arm64" && !signed { // such a Mac starts nothing that is not signed, if only by its builder
			t.Error("the program is not signed")
		}
	case "windows":
		f, err := pe.NewFile(r)
		must(t, err)
		machine = map[uint16]string{
			pe.IMAGE_FILE_MACHINE_AMD64: "x86-64",
			pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
		}[f.Machine]
	}
	if machine != want {
		t.Errorf("the program is for %q, not %s", machine, want)
	}
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	must(t, err)
	for _, path := range []string{repository + "/", os.Getenv("HOME") + "/"} {
		if len(path) > 2 && bytes.Contains(program, []byte(path)) {
			t.Errorf("the program has %s in it", path)
		}
	}
}

// TestRefusals: the builder does not mix its files with others, and says what it needs.
func TestRefusals(t *testing.T) {
	built(t)
	full := t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "old.tgz"), nil, 0o644))
	for want, args := range map[string][]string{"is not empty": {full}, "one directory is needed": {}} {
		cmd := exec.Command(filepath.Join("..", "..", "scripts", "packages"), args...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("scripts/packages %q: %v\n%s", args, err, out)
		}
	}
	if left := tree(t, full); len(left) != 1 {
		t.Errorf("it wrote %q", left)
	}
}
