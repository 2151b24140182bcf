package sandbox

import "path/filepath"

// Profile returns the policy as a profile for sandbox-exec -p. It ignores Read and the limits.
func Profile(p Policy) string {
	v := view{root: p.Root, write: p.Write, hidden: p.Hidden, temp: p.Temp, network: p.Network.name()}
	for _, k := range p.kept() {
		v.protected = append(v.protected, filepath.Join(k.base, k.name))
	}
	return profile(v)
}
