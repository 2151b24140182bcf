package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// triedWalls records that walls of one kind have held on this machine, because a trial takes as long as building them.
// The next start is as safe: the stage of each agent also tries the walls before it starts the agent. A failure there
// ends that start, and removes the record.
type triedWalls struct {
	file string // of all kinds, a line each
	kind string // a hash of all that decides whether walls can be built
}

const heldMost = 64

func heldIn(state string, p AgentPolicy, files []string) triedWalls {
	text := func(path string) string {
		data, err := os.ReadFile(path)
		return fmt.Sprint(string(data), err)
	}
	link := func(path string) string {
		to, err := os.Readlink(path)
		return fmt.Sprint(to, err)
	}
	var self unix.Stat_t
	_ = unix.Stat("/proc/self/exe", &self)
	data, err := json.Marshal([]any{
		text("/proc/sys/kernel/random/boot_id"), text("/proc/version"), os.Geteuid(), os.Getegid(),
		self.Dev, self.Ino, self.Size, self.Mtim, self.Ctim,
		link("/proc/self/ns/user"), link("/proc/self/ns/mnt"), link("/proc/self/ns/pid"), link("/proc/self/root"),
		text("/proc/sys/user/max_user_namespaces"), text("/proc/sys/kernel/unprivileged_userns_clone"),
		text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), text("/proc/self/attr/current"),
		p.Root, p.Write, p.Roots, p.Hidden, p.Homes, p.Places, p.Veiled, p.OwnSettings, files, filepath.Dir(p.Temp),
	})
	if err != nil { // none of these can fail to be encoded
		return triedWalls{}
	}
	sum := sha256.Sum256(data)
	return triedWalls{filepath.Join(state, "agent-walls"), hex.EncodeToString(sum[:])}
}

// has reports whether walls of this kind are recorded.
func (h triedWalls) has() bool { return slices.Contains(h.kinds(), h.kind) }

func (h triedWalls) kinds() []string {
	data, _ := os.ReadFile(h.file)
	return strings.Fields(string(data))
}

// remember records that the walls held. If that fails, the next start tries again.
func (h triedWalls) remember() {
	kinds := append(h.kinds(), h.kind)
	kinds = kinds[max(0, len(kinds)-heldMost):]
	f, err := os.CreateTemp(filepath.Dir(h.file), ".agent-walls-")
	if err != nil {
		return
	}
	_, err = f.WriteString(strings.Join(kinds, "\n") + "\n")
	if f.Close() != nil || err != nil || os.Rename(f.Name(), h.file) != nil {
		_ = os.Remove(f.Name())
	}
}

// forget removes the record of all kinds.
func (h triedWalls) forget() { _ = os.Remove(h.file) }
