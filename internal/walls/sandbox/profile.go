package sandbox

// Profile returns the policy as a profile for sandbox-exec -p. It ignores Read and the limits.
func Profile(p Policy) string {
	v := view{root: p.Root, write: p.Write, hidden: p.Hidden, temp: p.Temp, network: p.Network.name()}
	v.protected = p.protectedPaths()
	return profile(v)
}
