package sandbox

// AgentPolicy says what an agent may do that is another's program. Mounts hold it, and no Landlock, because it may
// build a sandbox of its own around its commands, for which it has to mount.
//
//	everything ─────────────── read-only
//	Root, Write ────────────── as AgentWalls.SetWritable says, at first writable
//	Homes ──────────────────── empty but for Places and what AgentNeeds lists
//	/tmp, /run, /dev, /proc ── its own
//	Veiled ─────────────────── not there for the agent's own program
//
// Its network is that of the machine. Of Policy, what is about names, hosts, limits and repositories is not for agents.
type AgentPolicy struct {
	Policy

	// Veiled are names of a repository's configuration: ".claude", ".github/hooks". No program of AgentNeeds.Readers
	// finds them, whenever they appear, but for what is its own. Other programs do, such as git.
	Veiled []string
	Makes  []string // names beneath those that the agent makes, and finds
	// Reviewed are files beneath those names that it finds all the same, while they have that SHA-256: by paths without
	// links, in hexadecimal.
	Reviewed map[string]string
}

// AgentNeeds is what one process of an agent needs beside the workspace. Paths are absolute; those that do not exist
// are ignored, but Own is made.
type AgentNeeds struct {
	Own     []string // directories that it may change: its logins, sessions and caches
	Show    []string // files and directories that it reads, wherever they lie, such as its program
	Readers []string // files and directories of its program, see AgentPolicy.Veiled
}
