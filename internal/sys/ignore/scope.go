package ignore

// Files are the rules in a directory.
type Files struct {
	Own        *Rules // of the tool's own file, such as .rgignore
	Ignore     *Rules // of .ignore
	Git        *Rules // of .gitignore
	Repository bool   // it has .git: rules of git from above do not apply here
	Exclude    *Rules // of its .git/info/exclude
	User       *Rules // of the user's excludes file
}

// Scope has the rules that apply in a directory: its own, and those of its parents. It does not change, so any number
// of goroutines may use one. Nil has no rules.
type Scope struct {
	above *Scope
	base  int // length of the directory's path with the trailing slash
	files Files
	inGit bool
}

// Enter returns the scope of a directory. Its path, "" for the topmost, is relative to the same directory in the whole
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

// InGit reports whether rules of git apply here.
func (s *Scope) InGit() bool { return s != nil && s.inGit }

// Match returns what the rules say about a path in the scope's directory.
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
