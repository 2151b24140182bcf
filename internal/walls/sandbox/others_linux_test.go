package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"omniagent/internal/testkit/hermetic"
)

// again runs tests of this program as somebody else, or in another place. Its arguments are those of a function of
// TestMain.
func again(t *testing.T, attr *syscall.SysProcAttr, id int, before, tests string) {
	t.Helper()
	if os.Getenv(groundVariable) != "" {
		t.Skip("this is such a run already")
	}
	base, err := os.Getwd()
	must(t, err)
	for dir := base; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); id != 0 && (err != nil || info.Mode()&0o001 == 0) {
			base = "/var/lib" // the source is out of reach for others
		}
	}
	dir, err := os.MkdirTemp(base, ".test-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	text, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	must(t, hermetic.WriteProgram(dir+"/program", text, 0o755))
	must(t, os.Mkdir(dir+"/tmp", 0o700))
	for _, path := range []string{dir, dir + "/program", dir + "/tmp"} {
		must(t, os.Chown(path, id, id))
	}
	must(t, os.Chmod(dir, 0o755))
	cmd := exec.Command(dir+"/program", before, "-test.v", "-test.run", tests)
	cmd.Dir, cmd.SysProcAttr = dir, attr
	cmd.Env = []string{groundVariable + "=" + dir, "PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir + "/tmp"}
	if list, err := os.ReadFile("testdata/workspaces.txt"); err == nil {
		cmd.Env = append(cmd.Env, workspacesVariable+"="+string(list))
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("%v\n%s", err, out)
		return
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "--- ") || strings.Contains(line, "claim") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

const (
	behindWalls = "^(TestAttacks|TestBehaviour|TestGit|TestHosts|TestLimits|TestReadOnlySome|TestKilled|TestClaim|" +
		"TestWorkspaces|TestHomeIsEmpty|TestHiddenLate|TestCopies|TestLayers|TestFirstUse|TestHomesOfAllKinds|TestAgent.*)$"
	whatDiffers = "^(TestAttacks|TestHosts|TestLimits|TestClaim|TestAgent.*)$" // where only the tier or a mount does
)

// TestAsOrdinaryUser does it all without privileges.
func TestAsOrdinaryUser(t *testing.T) {
	hermetic.Long(t)
	if os.Geteuid() != 0 {
		t.Skip("only the superuser can become somebody else")
	}
	again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: hermetic.Ordinary, Gid: hermetic.Ordinary}},
		hermetic.Ordinary, "as-it-is", behindWalls)
}

// TestWithoutNamespaces does it where no further namespace can be made.
func TestWithoutNamespaces(t *testing.T) {
	hermetic.Long(t)
	again(t, inNamespace(), 0, "without-namespaces", whatDiffers)
}

// TestMaskedProcesses does it where /proc is partly covered, as in containers, and no other one can be mounted.
func TestMaskedProcesses(t *testing.T) {
	hermetic.Long(t)
	again(t, inNamespace(), 0, "masked-processes", whatDiffers)
}

func inNamespace() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
}

func withoutNamespaces() error {
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

func maskedProcesses() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("/dev/null", "/proc/timer_list", "", unix.MS_BIND, "")
}

// TestClaim says what was found out.
func TestClaim(t *testing.T) {
	for _, tier := range tiers(t) {
		g := newGround(t)
		w := g.walls(t, tier)
		c := w.Enforced()
		t.Logf("claim: %s %s %q", c.Name, c.Network, c.Holes)
		if w.Tier() != tier || c.Name != tier.String() || c.Network != "off" || len(c.Holes) == 0 {
			t.Errorf("%+v", c)
		}
		has := func(part string) bool { return strings.Contains(strings.Join(c.Holes, "\n"), part) }
		if has("chmod") || has("mode, owner") == (tier == Landlock) || has(".git/hooks") {
			t.Errorf("%s: %q", tier, c.Holes)
		}
	}
}
