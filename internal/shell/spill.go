package shell

import (
	"os"
	"path/filepath"
	"sync"

	"omniagent/internal/fault"
	"omniagent/internal/redact"
)

// maxSpills is how much the files of one conversation may be together before the oldest go.
const maxSpills = 4 * maxSpill

// spills is where outputs are kept that are too long to show: files that only the user may read.
type spills struct {
	secrets *redact.Values // what they do not have

	given string // empty: a temporary directory, made with the first file
	most  int64  // bytes of a stream that a file keeps; 0: maxSpill

	mu    sync.Mutex
	dir   string
	files []string // the oldest first
	gone  bool
}

// create makes a file. Its name tells the stream.
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
	s.files = append(s.files, f.Name())
	return f, nil
}

func (s *spills) limit() int64 {
	if s.most > 0 {
		return s.most
	}
	return maxSpill
}

// makeRoom removes the oldest files when they are too much together.
func (s *spills) makeRoom() {
	var sizes []int64
	var total int64
	for _, name := range s.files {
		info, err := os.Stat(name)
		if err != nil {
			sizes = append(sizes, 0)
			continue
		}
		sizes = append(sizes, info.Size())
		total += info.Size()
	}
	for total > maxSpills-maxSpill && len(s.files) > 0 {
		_ = os.Remove(s.files[0])
		total -= sizes[0]
		s.files, sizes = s.files[1:], sizes[1:]
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
