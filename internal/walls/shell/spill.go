package shell

import (
	"os"
	"path/filepath"
	"sync"

	"omniagent/internal/kit/fault"
	"omniagent/internal/sys/redact"
)

// maxSpills is the total size of the files of one conversation, before the oldest are removed. Files of running
// commands, or of output that may still be read, stay.
const maxSpills = 4 * maxSpill

// spills stores output that is too long to show: files that only the user may read.
type spills struct {
	secrets *redact.Values // removed from the files

	given string // empty: a temporary directory, created with the first file
	most  int64  // bytes of a stream in a file; 0: maxSpill

	mu    sync.Mutex
	dir   string
	files []spillFile // the oldest first
	gone  bool
}

type spillFile struct {
	name string
	open bool // a record writes to it or reads from it
}

// create creates a file, named after the stream.
func (s *spills) create(stream string) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return nil, os.ErrClosed
	}
	if s.dir == "" {
		dir, err := s.given, error(nil)
		if dir == "" {
			dir, err = os.MkdirTemp("", "omniagent-output-") // 0700
		}
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return nil, fault.New(fault.PermissionDenied, "there is no temporary directory").Because(err)
		}
		s.dir = dir
	}
	s.makeRoom()
	f, err := os.CreateTemp(s.dir, "command-*-"+stream+".txt") // 0600
	if err != nil {
		return nil, err
	}
	s.files = append(s.files, spillFile{f.Name(), true})
	return f, nil
}

// makeRoom removes the oldest files if all together are too large.
func (s *spills) makeRoom() {
	sizes := make([]int64, len(s.files))
	var total int64
	for i, f := range s.files {
		if info, err := os.Stat(f.name); err == nil {
			sizes[i] = info.Size()
			total += info.Size()
		}
	}
	var kept []spillFile
	for i, f := range s.files {
		if f.open || total <= maxSpills-maxSpill {
			kept = append(kept, f)
			continue
		}
		_ = os.Remove(f.name)
		total -= sizes[i]
	}
	s.files = kept
}

// release marks the file of a record as no longer needed.
func (s *spills) release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.files {
		if s.files[i].name == name {
			s.files[i].open = false
		}
	}
}

// remove removes the directory if it is a temporary one.
func (s *spills) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	if s.given == "" && s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
