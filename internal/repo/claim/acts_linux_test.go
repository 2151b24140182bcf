package claim_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/core/event"
)

// named reports whether a call that is under way names a path: what others write there is not told apart.
func (w *world) named(name string) bool {
	for _, r := range w.runs {
		if r.open != nil && !r.open.asks && slices.ContainsFunc(r.open.paths, func(p string) bool {
			return p == name || strings.HasPrefix(name, p+"/")
		}) {
			return true
		}
	}
	return false
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history, fmt.Sprintf(format, args...))
}

func (w *world) at(name string) string { return filepath.Join(w.dir, name) }

func (w *world) read(name string) (string, bool) {
	text, err := os.ReadFile(w.at(name))
	return string(text), err == nil
}

func (w *world) put(name, text string) {
	if err := os.MkdirAll(filepath.Dir(w.at(name)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.at(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// changed notes who has changed a path.
func (w *world) changed(who string, names ...string) bool {
	for _, name := range names {
		if w.by[name] == nil {
			w.by[name] = map[string]bool{}
		}
		w.last[name], w.by[name][who] = who, true
		w.vague[name] = w.vague[name] || w.moved[name]
	}
	return true
}

// line is a line of somebody.
func (w *world) line(who string) string {
	w.lines++
	return fmt.Sprintf("%s %d", who, w.lines)
}

// some returns a file that is there, or "".
func (w *world) some() string {
	var names []string
	for name := range w.was {
		if w.by[name] == nil {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(slices.AppendSeq(names, maps.Keys(w.by)), func(name string) bool {
		info, err := os.Lstat(w.at(name))
		return err != nil || !info.Mode().IsRegular()
	})
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	return names[w.dice.IntN(len(names))]
}

// fresh returns the name of no file, in an old or a new directory.
func (w *world) fresh(who string) string {
	w.lines++
	return fmt.Sprintf("%snew %s %d", []string{"", "old/", "more/", who + "s/in/"}[w.dice.IntN(4)], who, w.lines)
}

// person lets the person do something to what no call that is under way names.
func (w *world) person() {
	name, fresh := w.some(), w.fresh(person)
	if w.named(fresh) {
		return
	}
	dirs := w.dirs(fresh)
	do := w.dice.IntN(7)
	if do > 0 && (name == "" || w.named(name)) {
		return
	}
	w.note("person %d %s %s", do, name, fresh)
	text, _ := w.read(name)
	lines := strings.SplitAfter(text, "\n")
	at := w.dice.IntN(len(lines))
	switch do {
	case 0:
		w.put(fresh, w.line(person)+"\n")
		w.changed(person, append(dirs, fresh)...)
	case 1:
		w.put(name, text+w.line(person)+"\n")
		w.changed(person, name)
	case 2, 3:
		lines[at] = w.line(person) + "\n"
		w.put(name, strings.Join(lines, ""))
		w.changed(person, name)
	case 4:
		_ = os.Remove(w.at(name))
		w.changed(person, name)
	case 5:
		w.move(person, name, fresh)
	case 6:
		mode := []os.FileMode{0o700, 0o644, 0o600}[w.dice.IntN(3)]
		if info, err := os.Lstat(w.at(name)); err == nil && info.Mode() != mode && os.Chmod(w.at(name), mode) == nil {
			w.changed(person, name)
		}
	}
}

// dirs returns the directories above a path that are not there, and have to be made for it.
func (w *world) dirs(name string) (all []string) {
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(w.at(dir)); err != nil {
			all = append(all, dir+"/")
		}
	}
	return all
}

func (w *world) move(who, from, to string) bool {
	dirs := w.dirs(to)
	_ = os.MkdirAll(filepath.Dir(w.at(to)), 0o755)
	if os.Rename(w.at(from), w.at(to)) != nil {
		return false
	}
	theirs := maps.Clone(w.by[from])
	w.changed(who, append(dirs, from, to)...)
	if w.vague[to] = w.vague[to] || len(theirs) > 0; who == agent {
		w.moved[to] = true
	}
	maps.Copy(w.by[to], theirs)
	return true
}

func input(members ...string) json.RawMessage {
	in := map[string]string{}
	for i := 0; i < len(members); i += 2 {
		in[members[i]] = members[i+1]
	}
	data, _ := json.Marshal(in)
	return data
}

func (w *world) tool(name string, in json.RawMessage, paths ...string) *call {
	return &call{Call: *event.NewCall("", name, event.Write, in, "file_path"), paths: paths}
}

func (w *world) shell(command string, paths ...string) *call {
	return &call{Call: *event.NewCall("", "Bash", event.Shell, input("command", command)), paths: paths}
}

func quoted(name string) string { return "'" + name + "'" }

// call returns a call of an agent, or nil.
func (w *world) call(who string) *call {
	name, fresh := w.some(), w.fresh(who)
	if a := w.runs[agent].open; who == second && a != nil && len(a.paths) > 0 && w.dice.IntN(2) == 0 {
		if _, there := w.read(a.paths[0]); there { // what the agent's call may write too
			name = a.paths[0]
		}
	}
	if name == "" {
		return nil
	}
	if who == agent && w.record == lying && w.dice.IntN(2) == 0 {
		return w.lie(name)
	}
	if w.dice.IntN(2) == 0 {
		return w.edits(who, name, fresh)
	}
	return w.commands(who, name, fresh)
}

// edits returns a call of a tool for files.
func (w *world) edits(who, name, fresh string) *call {
	text, _ := w.read(name)
	lines := strings.SplitAfter(text, "\n")
	old, line := lines[w.dice.IntN(len(lines))], w.line(who)
	switch spell := []string{name, w.at(name), "old/../" + name}[w.dice.IntN(3)]; w.dice.IntN(4) {
	case 0:
		c := w.tool("Edit", input("file_path", fresh, "content", line+"\n"), fresh)
		c.act = func() bool {
			dirs := w.dirs(fresh)
			w.put(fresh, line+"\n")
			return w.changed(who, append(dirs, fresh)...)
		}
		return c
	case 1:
		whole := line + "\n"
		if !w.shim { // an agent that has read the file may write what others wrote there, which the shim does not see
			whole = text + whole
		}
		c := w.tool("Edit", input("file_path", spell, "content", whole), name)
		c.act = func() bool {
			dirs := w.dirs(name)
			w.put(name, whole)
			return w.changed(who, append(dirs, name)...)
		}
		return c
	default:
		c := w.tool("Edit", input("file_path", spell, "old_string", old, "new_string", line+"\n"), name)
		c.act = func() bool {
			now, there := w.read(name)
			if !there || old == "" || strings.Count(now, old) != 1 {
				return false
			}
			w.put(name, strings.Replace(now, old, line+"\n", 1))
			return w.changed(who, name)
		}
		return c
	}
}

// commands returns a call of a shell.
func (w *world) commands(who, name, fresh string) *call {
	var c *call
	line := w.line(who)
	switch w.dice.IntN(7) {
	case 0:
		c = w.shell("rm -f "+quoted(name), name)
		c.act = func() bool { return os.Remove(w.at(name)) == nil && w.changed(who, name) }
	case 1:
		c = w.shell("mkdir -p "+quoted(filepath.Dir(fresh))+"; mv "+quoted(name)+" "+quoted(fresh), name, fresh)
		c.act = func() bool { return w.move(who, name, fresh) }
	case 2:
		c = w.shell("echo "+line+" > "+quoted(name), name)
		c.act = func() bool {
			if _, there := w.read(name); !there {
				return false
			}
			w.put(name, line+"\n")
			return w.changed(who, name)
		}
	case 3:
		c = w.shell("echo "+line+" >> "+quoted(name), name)
		c.act = func() bool {
			text, there := w.read(name)
			if !there {
				return false
			}
			w.vague[name] = w.vague[name] || w.shim
			w.put(name, text+line+"\n")
			return w.changed(who, name)
		}
	case 4:
		c = w.shell("sed -i 1s/.*/"+line+"/ "+quoted(name), name)
		c.act = func() bool {
			text, there := w.read(name)
			if !there {
				return false
			}
			_, rest, _ := strings.Cut(text, "\n")
			w.vague[name] = w.vague[name] || w.shim
			_ = os.WriteFile(w.at("sedtmp"), []byte(line+"\n"+rest), 0o644)
			return os.Rename(w.at("sedtmp"), w.at(name)) == nil && w.changed(who, name)
		}
	case 5:
		c = w.shell("chmod 755 "+quoted(name), name)
		c.act = func() bool { return os.Chmod(w.at(name), 0o755) == nil && w.changed(who, name) }
	default:
		dir := filepath.Dir(fresh)
		c = w.shell("mkdir -p "+quoted(dir)+" && echo "+line+" > "+quoted(fresh), fresh, dir)
		c.act = func() bool {
			dirs := w.dirs(fresh)
			w.put(fresh, line+"\n")
			return w.changed(who, append(dirs, fresh)...)
		}
	}
	return c
}

// lie returns a call that does nothing, and says that it made what somebody else made there, or something else.
func (w *world) lie(name string) *call {
	text, _ := w.read(name)
	_, before, _ := strings.Cut(w.was[name], "\n")
	is := input("file_path", name, "content", text)
	switch w.dice.IntN(7) {
	case 0:
		return w.tool("Write", is, name)
	case 1:
		return w.tool("Edit", input("file_path", name, "old_string", before, "new_string", text), name)
	case 2: // what it names is told when it is over
		c := w.tool("Write", input("file_path", "elsewhere", "content", ""))
		c.swap = is
		return c
	case 3:
		c := w.shell("echo no > " + quoted(name))
		c.asks = true
		return c
	case 4:
		return w.shell("sed -i s/one/x/ "+quoted(name)+"; echo x > "+quoted(name)+"; rm -f "+quoted(name), name)
	case 5: // what is gone, or moved
		for _, old := range slices.Sorted(maps.Keys(w.was)) {
			if old = strings.TrimSuffix(old, "/"); !w.shim && w.last[old] == person {
				return w.shell("rm -rf "+quoted(old)+"; mv "+quoted(old)+" "+quoted(name), name, old)
			}
		}
		return nil
	default:
		return w.shell("ln -s . link; cp -r old link; touch "+quoted(name), name, "old", "link")
	}
}
