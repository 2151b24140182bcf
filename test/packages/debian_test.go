package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestEmptyDebian installs, uses and removes the package in a Debian that has nothing else:
//
//	mmdebstrap --variant=minbase --include=bash-completion,man-db,apparmor stable root.tar
//	OMNIAGENT_TEST_DEBIAN=root.tar
func TestEmptyDebian(t *testing.T) {
	dir, base := built(t), os.Getenv("OMNIAGENT_TEST_DEBIAN")
	if base == "" {
		t.Skip("OMNIAGENT_TEST_DEBIAN names no archive of an empty Debian, which mmdebstrap makes")
	}
	t.Parallel()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || os.Geteuid() != 0 {
		t.Skip("it needs Linux on amd64, and root")
	}
	root := filepath.Join(newPlace(t).root, "debian")
	must(t, os.Mkdir(root, 0o755))
	if out, err := exec.Command("tar", "-xf", base, "-C", root, "--exclude=./dev/*").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inside := func(script string) string {
		t.Helper()
		cmd := exec.Command(needs(t, "unshare"), "--mount", "--pid", "--fork", "/bin/sh", "-euc",
			`mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc"; exec chroot "$0" /bin/bash -euc "$1"`, root,
			script)
		cmd.Env = []string{
			"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8",
			"DEBIAN_FRONTEND=noninteractive",
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	const caches = "-path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -print"
	before := inside("cd / && find . -xdev " + caches + " | sort")
	name := "omniagent_" + version + "-1_amd64.deb"
	must(t, os.WriteFile(filepath.Join(root, "tmp", name), read(t, dir, name), 0o644))
	inside("dpkg -i /tmp/" + name + " && rm /tmp/" + name)
	if got := strings.TrimSpace(inside("omniagent --version")); got != version {
		t.Errorf("the version is %q", got)
	}
	for script, want := range map[string]string{
		"omniagent agents list --output id": "native",
		"omniagent help undo":               "omniagent undo",
		"mkdir /tmp/w && cd /tmp/w && omniagent --agent native -p hi --rehearse":                                  "ok",
		"zcat /usr/share/man/man1/omniagent-review.1.gz":                                                          "omniagent review",
		"apparmor_parser --skip-kernel-load --skip-cache --debug /usr/share/doc/omniagent/examples/apparmor 2>&1": "userns",
		`. /usr/share/bash-completion/bash_completion; _comp_load omniagent 2>/dev/null || _completion_loader omniagent || true;
		 COMP_LINE='omniagent --agent nat' COMP_POINT=21 COMP_TYPE=9 COMP_WORDS=(omniagent --agent nat) COMP_CWORD=2
		 set +eu; __start_omniagent 2>/dev/null; printf '%s\n' "${COMPREPLY[@]}"`: "native",
	} {
		if got := inside(script); !strings.Contains(got, want) {
			t.Errorf("%s: %q, not %q", script, got, want)
		}
	}
	inside("dpkg --purge omniagent; rm -rf /root/.[a-z]* /tmp/w")
	after := inside("cd / && find . -xdev " + caches + " | sort")
	left := strings.Split(after, "\n")
	for line := range strings.Lines(after) {
		if line = strings.TrimSuffix(line, "\n"); !slices.Contains(strings.Split(before, "\n"), line) &&
			!strings.HasPrefix(line, "./root") && !strings.HasPrefix(line, "./tmp") {
			t.Errorf("left behind: %s", line)
		}
	}
	if len(left) < 100 {
		t.Errorf("the list is %q", after)
	}
}
