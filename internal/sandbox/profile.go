package sandbox

import "path/filepath"

// Profile is the policy as a program for sandbox-exec -p. A list of what can be read and limits are not part of it.
func Profile(p Policy) string {
	v := view{root: p.Root, write: p.Write, hidden: p.Hidden, temp: p.Temp, network: p.Network.name()}
	for _, k := range p.kept() {
		v.protected = append(v.protected, filepath.Join(k.base, k.name))
	}
	return profile(v)
}
