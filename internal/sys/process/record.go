package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
)

// longestEntry is the longest line of a register that is read. The whole file may have any length: a process that
// always has a child never removes it.
const longestEntry = 64 << 10

// Register is a file that lists the running children of this process, so that others can see what we have started, and
// end what is left of it after our death. The file exists as long as one of them runs.
type Register struct {
	path string

	mu      sync.Mutex
	running int
}

// NewRegister returns a register in that file, whose directory has to exist.
func NewRegister(path string) *Register { return &Register{path: path} }

// Registered is a child in a register.
type Registered struct {
	File    string    // the register
	PID     int       //
	Argv0   string    //
	Started time.Time //
	Alive   bool      // it runs; another process with its number does not count
	entry   registerLine
}

// registerLine is one line of a register. A child that has ended has a second line, with Ended.
type registerLine struct {
	PID      int       `json:"pid"`
	Argv0    string    `json:"argv0"`
	Started  time.Time `json:"started"`
	Identity string    `json:"identity,omitempty"` // tells the child from later processes with its number
	Mark     string    `json:"mark,omitempty"`     // in the environment of everything that it starts
	Owner    int       `json:"owner,omitempty"`    // the process that started it
	OwnerIs  string    `json:"owner_identity,omitempty"`
	Space    string    `json:"pid_namespace,omitempty"` // in which the numbers count
	Inside   string    `json:"inside,omitempty"`        // the PID namespace of the child, if it is another
	Note     string    `json:"note,omitempty"`          // as Plan.Note
	Leaves   []string  `json:"leaves,omitempty"`        // as Plan.RemoveIfEmpty
	Ended    bool      `json:"ended,omitempty"`
}

// Registers lists the children in the registers of dir that are not marked as ended. A dir that does not exist has
// none. It ignores files that are not registers.
func Registers(dir string) ([]Registered, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.New(fault.PermissionDenied, "cannot list %s", dir).With("path", dir).Because(err)
	}
	var children []Registered
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, file.Name())
		for _, e := range readEntries(path) {
			children = append(children, Registered{path, e.PID, e.Argv0, e.Started, e.alive(), e})
		}
	}
	return children, nil
}

// alive reports whether the very process of the entry runs.
func (e registerLine) alive() bool { return e.PID != os.Getpid() && is(e.PID, e.Identity) }

// is reports whether the process with this number is the one with that identity.
func is(pid int, id string) bool {
	if pid <= 1 || id == "" {
		return false
	}
	now, runs := identity(pid)
	return runs && now == id
}

// registration is the entry of one child in a register. A nil registration does nothing.
type registration struct {
	of    *Register
	child registerLine
}

// reserve prepares an entry before a child is started. It fails if the child could not be listed.
func (r *Register) reserve() (*registration, error) {
	if r == nil {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.write(nil); err != nil {
		return nil, err
	}
	r.running++
	return &registration{of: r}, nil
}

// take lists a child that was started.
func (s *registration) take(c *Child) error {
	if s == nil {
		return nil
	}
	id, _ := identity(c.pid) // empty: it has exited already
	ours, _ := identity(os.Getpid())
	s.child = registerLine{
		PID: c.pid, Argv0: c.plan.Argv[0], Started: time.Now().UTC(), Identity: id, Mark: c.mark,
		Owner: os.Getpid(), OwnerIs: ours, Space: numberSpace("self"), Note: c.plan.Note,
		Leaves: c.plan.RemoveIfEmpty,
	}
	if c.OwnPIDs() {
		s.child.Inside = numberSpace(strconv.Itoa(c.pid))
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.of.write(&s.child)
}

// leave marks the child as gone. The last one removes the register.
func (s *registration) leave() {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.of.running--; s.of.running == 0 {
		_ = os.Remove(s.of.path)
	} else if s.child.PID != 0 {
		s.child.Ended = true
		_ = s.of.write(&s.child)
	}
}

// Tidy is Tidy for the directory of the register.
func (r *Register) Tidy() {
	if r != nil {
		Tidy(filepath.Dir(r.path))
	}
}

// Tidy removes what the children in the registers of dir have left, if they and their owners are dead.
func Tidy(dir string) {
	children, _ := Registers(dir)
	for _, c := range children {
		e := c.entry
		if len(e.Leaves) > 0 && e.Space == numberSpace("self") && !is(e.Owner, e.OwnerIs) && len(e.left()) == 0 {
			RemoveEmpty(e.Leaves)
			e.Ended = true // an empty directory that a person makes later stays
			_ = NewRegister(c.File).write(&e)
		}
	}
}

// RemoveEmpty removes those paths that are empty directories or empty files. It keeps a path whose directory is reached
// through a link.
func RemoveEmpty(paths []string) {
	for _, path := range paths {
		dir := filepath.Dir(path)
		if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
			continue
		}
		info, err := os.Lstat(path)
		if err == nil && (info.IsDir() || info.Mode().IsRegular() && info.Size() == 0) {
			_ = os.Remove(path) // a directory only if it is empty
		}
	}
}

// write adds a line. The caller holds the lock. nil only checks that the file can be written.
func (r *Register) write(e *registerLine) error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil && e != nil {
		line, _ := json.Marshal(e)
		_, err = f.Write(append(line, '\n'))
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		return nil
	}
	code := fault.PermissionDenied
	if errors.Is(err, fs.ErrNotExist) {
		code = fault.FileMissing
	}
	return fault.New(code, "cannot record the child in %s", r.path).With("path", r.path).Because(err)
}

// readEntries returns the entries that have not ended. It ignores lines that are not entries, such as a truncated last
// line.
func readEntries(path string) []registerLine {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var entries []registerLine
	for in := lines.NewReader(f, longestEntry); in.Next(); {
		var e registerLine
		if json.Unmarshal(in.Text, &e) != nil || e.PID == 0 {
			continue
		}
		same := func(o registerLine) bool { return o.PID == e.PID && o.Started.Equal(e.Started) }
		entries = slices.DeleteFunc(entries, same)
		if !e.Ended {
			entries = append(entries, e)
		}
	}
	return entries
}
