package sandbox

import (
	"net"
	"os"
	"path/filepath"

	"omniagent/internal/kit/fault"
)

// Stands returns nil if this machine can build a sandbox of a tier. It builds one around a directory of its own, with
// only the network and the limits of the policy. UNAVAILABLE means that this machine cannot; any other error means that
// it is not known.
func Stands(t Tier, p Policy) error {
	_, err := rehearse(t, p)
	return err
}

// rehearse builds a sandbox around a new directory.
func rehearse(t Tier, like Policy) (holes []string, err error) {
	dir, err := os.MkdirTemp("", "omniagent-walls-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	p := Policy{
		Root: filepath.Join(dir, "root"), Temp: filepath.Join(dir, "temp"), Hidden: []string{filepath.Join(dir,
			"hidden")},
		Homes:     []string{filepath.Join(dir, "home")},
		Protected: []string{".mcp.json"}, Network: Network{Open: like.Network.Open}, Limits: like.Limits,
	}
	if t == Namespaces {
		p.Read = append(systemDirs(), p.Hidden...) // otherwise all of this would be unreadable
	}
	if like.Network.Serve != nil {
		p.Network.Serve = func(net.Listener) func() { return nil }
	}
	for _, each := range []string{p.Root, p.Temp, p.Hidden[0], p.Homes[0]} {
		if err == nil {
			err = os.Mkdir(each, 0o700)
		}
	}
	for _, each := range []string{p.Hidden[0], p.Homes[0]} {
		if err == nil {
			err = os.WriteFile(filepath.Join(each, "file"), []byte("hidden"), 0o600)
		}
	}
	if err != nil {
		return nil, fault.New(fault.Internal, "the walls could not be tried in a directory of their own").Because(err).
			Hint("Look whether %s can be written.", os.TempDir())
	}
	p.Hidden = append(p.Hidden, filepath.Join(p.Hidden[0], "file"))
	w, err := Open(p, Report{Tier: t}, Options{Tier: t, State: filepath.Join(dir, "state")})
	if err != nil {
		return nil, err
	}
	return w.holes, w.Close()
}
