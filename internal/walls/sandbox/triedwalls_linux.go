package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"omniagent/internal/kit/pathname"
	"omniagent/internal/sys/workspace"
)

// triedWalls records that walls of one kind have held on this machine, because a trial takes as long as building them.
// The next start is as safe: walls around an agent are tried again by the stage that starts it, and walls around
// commands before the first command. A failure there ends that start, and removes the record.
type triedWalls struct {
	file string // of all kinds, a line each: the kind, and the holes as JSON
	kind string // a hash of all that decides whether walls can be built
}

const heldMost = 64

// heldMostBytes is more than the record has unless something else wrote it.
const heldMostBytes = 1 << 20

// heldIn is the record of walls around an agent.
func heldIn(state string, p AgentPolicy, files []string) triedWalls {
	return p.tried(state, p.Root, p.Write, p.Roots, p.Hidden, p.Homes, p.Places, p.Veiled, p.OwnSettings, files,
		filepath.Dir(p.Temp))
}

// heldAround is the record of walls around commands.
func heldAround(state string, tier Tier, p Policy) triedWalls {
	data, err := json.Marshal(struct {
		Policy
		Network, Fresh, Temp, Scratch string // they hide functions, and names that are those of one conversation
	}{p, p.Network.name(), "", filepath.Dir(filepath.Dir(p.Temp)), ""})
	if err != nil { // none of it can fail to be encoded
		return triedWalls{}
	}
	return p.tried(state, "commands", tier, string(data))
}

// tried returns the record in the state directory. Where commands could write it there is no record, and each start
// tries the walls.
func (p Policy) tried(state string, what ...any) triedWalls {
	if !filepath.IsAbs(state) || p.writable(pathname.Real(state)) != "" {
		return triedWalls{}
	}
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
	data, err := json.Marshal(append([]any{
		text("/proc/sys/kernel/random/boot_id"), text("/proc/version"), os.Geteuid(), os.Getegid(),
		self.Dev, self.Ino, self.Size, self.Mtim, self.Ctim,
		link("/proc/self/ns/user"), link("/proc/self/ns/mnt"), link("/proc/self/ns/pid"), link("/proc/self/root"),
		text("/proc/sys/user/max_user_namespaces"), text("/proc/sys/kernel/unprivileged_userns_clone"),
		text("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"), text("/proc/self/attr/current"),
	}, what...))
	if err != nil { // none of these can fail to be encoded
		return triedWalls{}
	}
	sum := sha256.Sum256(data)
	return triedWalls{filepath.Join(state, "agent-walls"), hex.EncodeToString(sum[:])}
}

// found returns the holes of walls of this kind, and whether they are recorded.
func (h triedWalls) found() (holes []string, ok bool) {
	for _, line := range h.lines() {
		if kind, text, _ := strings.Cut(line, " "); kind == h.kind && h.kind != "" {
			return holes, text == "" || json.Unmarshal([]byte(text), &holes) == nil
		}
	}
	return nil, false
}

func (h triedWalls) lines() []string {
	data, _ := workspace.ReadFile(h.file, heldMostBytes)
	return strings.FieldsFunc(string(data), func(r rune) bool { return r == '\n' })
}

// remember records that the walls held, but for these holes. If that fails, the next start tries again.
func (h triedWalls) remember(holes []string) {
	text, err := json.Marshal(holes)
	if err != nil || h.kind == "" {
		return
	}
	lines := append(h.lines(), h.kind+" "+string(text))
	lines = lines[max(0, len(lines)-heldMost):]
	f, err := os.CreateTemp(filepath.Dir(h.file), ".agent-walls-")
	if err != nil {
		return
	}
	_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
	if f.Close() != nil || err != nil || os.Rename(f.Name(), h.file) != nil {
		_ = os.Remove(f.Name())
	}
}

// forget removes the record of all kinds.
func (h triedWalls) forget() {
	if h.file != "" {
		_ = os.Remove(h.file)
	}
}
