package workspace

import "io/fs"

// Status is the system's information about a file itself, never about the target of a link.
type Status struct {
	Mode     fs.FileMode
	Size     int64
	Modified int64 // in nanoseconds since 1970, like Changed
	// Changed is when content, mode or links last changed. No program can set it. It is Modified if the system does not
	// report it.
	Changed int64
	Inode   uint64 // like Device, 0 if the system does not report it
	Device  uint64
}

// StatusOf returns the status in info, which must come from package os.
func StatusOf(info fs.FileInfo) Status {
	s := Status{Mode: info.Mode(), Size: info.Size(), Modified: info.ModTime().UnixNano(), Device: device(info)}
	if s.Inode, s.Changed = identity(info); s.Inode == 0 {
		s.Changed = s.Modified
	}
	return s
}

// Status describes a file of the directory.
func (f *Folder) Status(name string) (s Status, err error) {
	s, _, err = f.StatusAndLinks(name)
	return s, err
}

// StatusAndLinks returns the status, and the number of the file's names.
func (f *Folder) StatusAndLinks(name string) (s Status, links uint64, err error) {
	err = f.with(func(p openDir) error { s, links, err = p.status(name); return err })
	return s, links, err
}

// Target returns the target of a link in the directory, as it is written.
func (f *Folder) Target(name string) (target string, err error) {
	err = f.with(func(p openDir) error { target, err = p.target(name); return err })
	return target, err
}
