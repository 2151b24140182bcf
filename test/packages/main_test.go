package packages

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"omniagent/internal/cli/command"
	"omniagent/internal/testkit/measure"
)

const version = command.Version

// built is the directory with the packages.
func built(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("OMNIAGENT_TEST_PACKAGES")
	if dir == "" {
		t.Skip("OMNIAGENT_TEST_PACKAGES names no directory that scripts/packages has filled")
	}
	return dir
}

// needs is the path of a program, without which the test is skipped.
func needs(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, elem ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	must(t, err)
	return data
}

// entry is a part of an archive.
type entry struct {
	*tar.Header
	data []byte
}

// entries unpacks an archive, and holds what is true of each of ours: sorted, of one time, of nobody, within itself.
func entries(t *testing.T, archive []byte) map[string]entry {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	if !zip.ModTime.IsZero() || zip.Name != "" {
		t.Errorf("the archive tells when it was compressed: %v %q", zip.ModTime, zip.Name)
	}
	all, last := map[string]entry{}, ""
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		if h.Uid != 0 || h.Gid != 0 || h.Uname != "root" || !h.ModTime.Equal(epoch(t)) || h.Mode&^0o755 != 0 &&
			h.Typeflag != tar.TypeSymlink {
			t.Errorf("%s is of %d:%d (%s), %v, mode %o", h.Name, h.Uid, h.Gid, h.Uname, h.ModTime, h.Mode)
		}
		if name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/"); name != "" && !filepath.IsLocal(name) ||
			h.Name <= last {
			t.Errorf("%s comes after %s", h.Name, last)
		}
		last = h.Name
		all[h.Name] = entry{h, data}
	}
}

// epoch is the time of every entry, as the first archive has it.
func epoch(t *testing.T) time.Time {
	t.Helper()
	f, err := os.Open(filepath.Join(built(t), "omniagent-"+version+".tgz"))
	must(t, err)
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(f)
	must(t, err)
	h, err := tar.NewReader(zip).Next()
	must(t, err)
	return h.ModTime
}

// place is an empty machine: a home, and nothing in the environment but a path.
type place struct{ root, home string }

func newPlace(t *testing.T) place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	p := place{root, filepath.Join(root, "home")}
	for _, dir := range []string{p.home, filepath.Join(root, "tmp"), filepath.Join(root, "work", ".git")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	return p
}

// command is a program started there.
func (p place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = filepath.Join(p.root, "work")
	cmd.Env = []string{
		"HOME=" + p.home, "TMPDIR=" + filepath.Join(p.root, "tmp"), "PATH=" + searched(),
		"LC_ALL=C",
	}
	return cmd
}

// searched is PATH with the programs of the administrator, without which dpkg installs nothing.
func searched() string { return os.Getenv("PATH") + ":/usr/local/sbin:/usr/sbin:/sbin" }

// does runs a program there that has to succeed, and returns what it printed.
func (p place) does(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := p.command(name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// works holds that an installed program does something: it tells its version, and its own agent answers on the scripted
// model.
func (p place) works(t *testing.T, program string) {
	t.Helper()
	if got := p.does(t, program, "--version"); got != version+"\n" {
		t.Errorf("%s is version %q, not %s", program, got, version)
	}
	if got := p.does(t, program, "--agent", "native", "-p", "hello", "--rehearse"); got != "ok\n" {
		t.Errorf("the agent says %q", got)
	}
	if strings.Contains(p.does(t, program, "manifest"), `"demo":`) {
		p.does(t, program, "demo")
	}
}

func TestSums(t *testing.T) {
	dir := built(t)
	want := []string{
		"Formula/omniagent.rb", "SHA256SUMS", "install.sh", "omniagent-" + version + ".tgz",
		"omniagent_" + version + "-1_amd64.deb", "omniagent_" + version + "-1_arm64.deb",
	}
	for _, target := range measure.Targets() {
		want = append(want, "omniagent-"+version+"-"+target.OS+"-"+target.Arch+".tar.gz")
	}
	for _, system := range []string{"darwin", "linux", "win32"} {
		want = append(want, "omniagent-"+system+"-arm64-"+version+".tgz", "omniagent-"+system+"-x64-"+version+".tgz")
	}
	slices.Sort(want)
	if got := tree(t, dir); !slices.Equal(got, want) {
		t.Errorf("built are\n%q, not\n%q", got, want)
	}
	named := []string{"SHA256SUMS"}
	for line := range strings.Lines(string(read(t, dir, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		named = append(named, name)
		if got := sha256.Sum256(read(t, dir, filepath.FromSlash(name))); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another sum than SHA256SUMS says", name)
		}
	}
	slices.Sort(named)
	if !slices.Equal(named, want) {
		t.Errorf("SHA256SUMS names %q", named)
	}
}

// tree are the files below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	names := []string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	}))
	slices.Sort(names)
	return names
}

// TestSameBytes builds it all again: from another directory, without version control, under another mask and in another
// zone.
func TestSameBytes(t *testing.T) {
	dir := built(t)
	t.Parallel()
	needs(t, "sh")
	source, again := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "again")
	copySource(t, source)
	cmd := exec.Command("sh", "-c", `umask 077; cd /; exec "$0" "$@"`, filepath.Join(source, "scripts", "packages"),
		again)
	cmd.Env = append(os.Environ(), "TZ=Asia/Tokyo", "LC_ALL=C", "USER=nobody", "GOFLAGS=",
		"SOURCE_DATE_EPOCH="+strconv.FormatInt(epoch(t).Unix(), 10))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range tree(t, dir) {
		if !bytes.Equal(read(t, dir, name), read(t, again, name)) {
			t.Errorf("%s has other bytes the second time", name)
		}
	}
}

// copySource copies what the packages are built from.
func copySource(t *testing.T, to string) {
	t.Helper()
	from := filepath.Join("..", "..")
	must(t, filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(from, path)
		target := filepath.Join(to, name)
		switch {
		case d.IsDir() && path != from && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode().Perm())
	}))
}
