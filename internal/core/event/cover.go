package event

// Cover is what a snapshot of a workspace can restore. The zero value is nothing.
type Cover struct {
	Roots []string // directories, absolute
	Gaps  []Gap    // what it does not have of them
}

// Gap is a file or a directory that a snapshot does not have.
type Gap struct {
	Path  string // absolute
	Why   string
	Loose bool // no .gitignore excludes it, so that git may overwrite it
}
