package sandbox

import (
	"net"
	"os"
	"path/filepath"

	"omniagent/internal/fault"
)

// Stands says whether walls of a tier stand on this machine, whatever they are to be around: it builds them around a
// directory of its own, with the network and the limits of a policy and nothing else of it. A fault of code UNAVAILABLE
// says that this machine cannot; any other error, that it could not be found out.
func Stands(t Tier, p Policy) error {
	_, err := rehearse(t, p)
	return err
}

// rehearse builds walls around a directory that is made for it.
func rehearse(t Tier, like Policy) (holes []string, err error) {
	dir, err := os.MkdirTemp("", "omniagent-walls-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	p := Policy{
		Root: filepath.Join(dir, "root"), Temp: filepath.Join(dir, "temp"), Hidden: []string{filepath.Join(dir,
			"hidden")},
		Protected: []string{".mcp.json"}, Network: Network{Open: like.Network.Open}, Limits: like.Limits,
	}
	if t == Namespaces {
		p.Read = append(systemDirs(), p.Hidden...) // or else all of this would be out of sight
	}
	if like.Network.Serve != nil {
		p.Network.Serve = func(net.Listener) func() { return nil }
	}
	for _, each := range []string{p.Root, p.Temp, p.Hidden[0]} {
		if err == nil {
			err = os.Mkdir(each, 0o700)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(p.Hidden[0], "file"), []byte("hidden"), 0o600)
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
	return w.Claim().Holes, w.Close()
}
