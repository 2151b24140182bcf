package terminal

import (
	"encoding/json"
	"os"
	"path/filepath"

	"golang.org/x/term"

	"omniagent/internal/sys/workspace"
)

// marker is the file that says how a terminal was, and which process has made it raw.
type marker struct {
	path string // empty: there is none
}

// markerLine is the content of the marker.
type markerLine struct {
	PID    int    `json:"pid"`
	Born   string `json:"born"` // tells the process from a later one with its number
	Before []byte `json:"before"`
	Raw    []byte `json:"raw"`
}

const mostRecord = 4096

// mark returns the marker of a terminal.
func mark(state string, d *device) marker {
	name := d.name()
	if state == "" || name == "" {
		return marker{}
	}
	return marker{filepath.Join(state, "terminals", name+".json")}
}

// write records the terminal. A record of an earlier owner that still lives stays: it knows better how the terminal
// was. An error changes nothing: Recover will not help then.
func (m *marker) write(d *device) {
	if m.path == "" {
		return
	}
	if r, ok := m.read(); ok && alive(r.PID, r.Born) {
		m.path = ""
		return
	}
	before, raw := d.states()
	data, err := json.Marshal(markerLine{os.Getpid(), born(os.Getpid()), before, raw})
	if err == nil && workspace.MkdirAll(filepath.Dir(m.path)) == nil {
		_ = workspace.WriteDerived(m.path, data, 0o600)
	}
}

func (m *marker) read() (r markerLine, ok bool) {
	return r, workspace.ReadJSON(m.path, mostRecord, &r) == nil
}

func (m *marker) remove() {
	if m.path != "" {
		_ = os.Remove(m.path)
	}
}

// Recover puts a terminal back as it was, if a program that had made it raw was killed and the terminal is still as
// that program left it. Any command may call it when it begins; it is a stat of one file if nothing is wrong.
func Recover(state string, in, out *os.File) (restored bool) {
	if state == "" || !term.IsTerminal(int(in.Fd())) {
		return false
	}
	var d device
	d.attach(in)
	m := mark(state, &d)
	if m.path == "" {
		return false
	}
	if _, err := os.Lstat(m.path); err != nil {
		return false
	}
	r, ok := m.read()
	if ok && alive(r.PID, r.Born) {
		return false
	}
	if ok && d.repair(r.Before, r.Raw) {
		if term.IsTerminal(int(out.Fd())) {
			_, _ = out.WriteString(end)
		}
		restored = true
	}
	m.remove()
	return restored
}
