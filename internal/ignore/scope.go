package ignore

// Files are the rules that a directory brings.
type Files struct {
	Own        *Rules // of the tool's own file, such as .rgignore
	Ignore     *Rules // of .ignore
	Git        *Rules // of .gitignore
	Repository bool   // it holds .git: no rule for git from above counts here
	Exclude    *Rules // of its .git/info/exclude
	User       *Rules // of the user's excludes file
}

// Scope is the rules that hold in a directory: its own, and those of the directories above. It does not change, so any
// number of goroutines may use one. Nil has no rules.
type Scope struct {
	above *Scope
	base  int // length of the directory's path with the slash behind it
	files Files
	inGit bool
}

// Enter is the scope of a directory. Its path, "" for the topmost, is relative to the same directory for the whole
// chain.
func (s *Scope) Enter(dir string, f Files) *Scope {
	if f == (Files{}) {
		return s
	}
	base := len(dir)
	if base > 0 {
		base++
	}
	return &Scope{above: s, base: base, files: f, inGit: f.Repository || s.InGit()}
}

// InGit says whether rules for git hold here.
func (s *Scope) InGit() bool { return s != nil && s.inGit }

// Match says what the rules say of a path in the scope's directory.
func (s *Scope) Match(path string, dir bool) Verdict {
	if s == nil {
		return None
	}
	kinds := [...]func(*Files) *Rules{
		func(f *Files) *Rules { return f.Own },
		func(f *Files) *Rules { return f.Ignore },
	}
	for _, of := range kinds {
		for at := s; at != nil; at = at.above {
			if v := of(&at.files).Match(path[at.base:], dir); v != None {
				return v
			}
		}
	}
	if !s.inGit {
		return None
	}
	for at := s; ; at = at.above {
		if v := at.files.Git.Match(path[at.base:], dir); v != None {
			return v
		}
		if !at.files.Repository {
			continue
		}
		if v := at.files.Exclude.Match(path[at.base:], dir); v != None {
			return v
		}
		return at.files.User.Match(path[at.base:], dir)
	}
}
