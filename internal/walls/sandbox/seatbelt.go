package sandbox

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A profile for macOS begins with (deny default). A profile that allows everything and denies what is known to be
// dangerous would run more programs, but would leave every service of a new macOS open. What follows is known from
// profiles that deny first, by Apple (below /System/Library/Sandbox/Profiles), Chromium and other agents; we have
// measured none of it:
//   - of two rules that match, the later one counts; the exception is an allow with require-all, which beats a deny of
//     a subpath before and after it, so none is used for what a profile is about;
//   - paths are compared as the kernel knows them, links resolved: /tmp is /private/tmp; and byte by byte, also on a
//     disk that takes two spellings for the same name;
//   - a closed list of what may be read does not work: the loader, git's shim and every toolchain read in places that
//     differ, so all is readable but what is hidden;
//   - without file-map-executable no program starts; node wants to write one sysctl, Python's multiprocessing
//     semaphores;
//   - a rename needs file-write-unlink for the old name and file-write-create for the new one, and takes what is
//     below along, so a name is only protected where the directories above it are;
//   - hard links are an operation of their own, file-link, and are refused: through one, a file outside could be
//     written inside;
//   - local addresses say nothing of where a connection leads, so only (remote ip …) limits one; names are resolved
//     over a Unix socket.

// view is what programs in a Seatbelt sandbox see of the system. Links in paths are resolved, as far as they exist; a
// relative path is below root.
type view struct {
	root      string   // the workspace, writable
	write     []string // writable too
	protected []string // never writable
	hidden    []string // neither readable nor writable
	temp      string   // writable; empty: none
	network   string   // off, on, or proxy:PORT for that port of this machine alone; anything else is off
}

// profile returns the profile for sandbox-exec -p. It leaves out a writable path that makes no sense, so that a mistake
// makes it stricter.
func profile(v view) string {
	var p strings.Builder
	p.WriteString(seatbeltBase())
	var roots []string
	for _, w := range append([]string{v.root, v.temp}, v.write...) {
		if w = v.absolute(w); w != "" {
			roots = append(roots, w)
		}
	}
	seatbeltRule(&p, "allow", "file-write*", "subpath", roots)
	p.WriteString(seatbeltNetwork(v.network))

	var protected, hidden []string
	for _, name := range v.protected {
		protected = append(protected, v.absolute(name))
	}
	for _, name := range v.hidden {
		hidden = append(hidden, v.absolute(name))
	}
	kept := slices.Concat(protected, hidden)
	seatbeltRule(&p, "deny", "file-write* file-link", "subpath", kept)
	seatbeltRule(&p, "deny", "file-read* file-map-executable process-exec", "subpath", hidden)
	// Renaming a directory above one of these would move it away from its rule, or another one to its place. The price
	// is that the directories cannot be created either: a rename onto a free name looks the same.
	seatbeltRule(&p, "deny", "file-write-create file-write-unlink", "literal", above(slices.Concat(kept, roots), roots))
	return p.String()
}

// seatbeltBase allows what every program may do.
func seatbeltBase() string {
	return `(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow file-read* file-map-executable)
(allow sysctl-read)
(deny sysctl-read (sysctl-name "kern.procargs2"))
(allow sysctl-write (sysctl-name "kern.grade_cputype") (sysctl-name "kern.tcsm_enable"))
(allow user-preference-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* (ipc-posix-name "apple.shm.notification_center") (ipc-posix-name-prefix "apple.cfprefs."))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow pseudo-tty)
(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/stdout") (literal "/dev/stderr") (literal "/dev/tty") (subpath "/dev/fd"))
(allow file-write* file-ioctl (literal "/dev/ptmx") (literal "/dev/dtracehelper"))
(allow file-write* file-ioctl (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
`
}

// seatbeltNetwork allows internet addresses and never Unix sockets, because each leads to a program outside.
func seatbeltNetwork(network string) string {
	if port, found := strings.CutPrefix(network, "proxy:"); found {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return ""
		}
		return fmt.Sprintf("(allow network-outbound (remote ip \"localhost:%d\"))\n", n)
	}
	if network != "on" {
		return ""
	}
	return `(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip "*:*"))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.trustd.agent"))
`
}

// absolute returns the canonical form of a path, or "".
func (v view) absolute(name string) string {
	if !path.IsAbs(name) && name != "" && path.IsAbs(v.root) {
		name = v.root + "/" + name
	}
	if !path.IsAbs(name) || strings.ContainsRune(name, 0) {
		return ""
	}
	return path.Clean(name)
}

// above lists the names and the directories above them that are writable.
func above(names, roots []string) []string {
	var list []string
	for _, name := range names {
		for dir := name; dir != "" && dir != "/"; dir = path.Dir(dir) {
			if slices.ContainsFunc(roots, func(r string) bool { return beneath(dir, r) }) {
				list = append(list, dir)
			}
		}
	}
	return list
}

func beneath(name, root string) bool {
	return slices.ContainsFunc(spellings(root), func(r string) bool {
		return slices.ContainsFunc(spellings(name), func(n string) bool {
			return n == r || r == "/" ||
				strings.HasPrefix(n, r+"/")
		})
	})
}

// spellings returns the names of a path through the links that every macOS has at its root.
func spellings(name string) []string {
	for _, top := range []string{"/tmp", "/var", "/etc"} {
		if name == top || strings.HasPrefix(name, top+"/") {
			return []string{name, "/private" + name}
		}
		if private := "/private" + top; name == private || strings.HasPrefix(name, private+"/") {
			return []string{strings.TrimPrefix(name, "/private"), name}
		}
	}
	return []string{name}
}

// seatbeltRule writes one rule for all paths in all spellings, once each. Without paths it writes nothing, because such
// a rule would apply to everything.
func seatbeltRule(p *strings.Builder, verdict, operations, filter string, paths []string) {
	var filters []string
	for _, name := range paths {
		if name == "" {
			continue
		}
		for _, s := range spellings(name) {
			if f := "\n  (" + filter + " " + seatbeltString(s) + ")"; !slices.Contains(filters, f) {
				filters = append(filters, f)
			}
		}
	}
	if len(filters) > 0 {
		p.WriteString("(" + verdict + " " + operations + strings.Join(filters, "") + ")\n")
	}
}

// seatbeltString quotes a string. The language is Scheme's: only the quote and the backslash are special. Control
// characters are made visible.
func seatbeltString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
