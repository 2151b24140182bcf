package archtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// testSide is the floor of what serves only tests and measurements: it may import anything, and no floor may import it.
const testSide = -1

// room is a row of the table. Only on the test side may its name end in "/...", for a package and all beneath it.
type room struct {
	floor int
	line  string // place of the row
}

// readRooms reads the table beneath the heading "## Rooms":
//
//	| floor | package | what it promises |
func readRooms(name string) (map[string]room, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	rooms := map[string]room{}
	within := false
	for i, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, "## ") {
			within = strings.TrimSpace(line) == "## Rooms"
			continue
		}
		if !within || !strings.HasPrefix(line, "|") {
			continue
		}
		place := fmt.Sprintf("docs/architecture.md:%d", i+1)
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 {
			return nil, fmt.Errorf("%s: a row has three cells: floor, package, what it promises", place)
		}
		floor, name := strings.TrimSpace(cells[0]), strings.Trim(strings.TrimSpace(cells[1]), "`")
		if floor == "floor" || strings.Trim(floor, "-:") == "" {
			continue
		}
		if _, twice := rooms[name]; twice {
			return nil, fmt.Errorf("%s: %s has two rows", place, name)
		}
		if strings.TrimSpace(cells[2]) == "" {
			return nil, fmt.Errorf("%s: %s promises nothing", place, name)
		}
		r := room{floor: testSide, line: place}
		if floor != "test" {
			if r.floor, err = strconv.Atoi(floor); err != nil || r.floor < 0 {
				return nil, fmt.Errorf("%s: a floor is a number or the word test, not %q", place, floor)
			}
		}
		rooms[name] = r
	}
	if len(rooms) == 0 {
		return nil, fmt.Errorf("%s has no table beneath the heading ## Rooms", name)
	}
	return rooms, nil
}

// room finds the row of a package.
func (t *tree) room(name string) (room, bool) {
	if r, ok := t.rooms[name]; ok {
		return r, true
	}
	for prefix := name; ; {
		if r, ok := t.rooms[prefix+"/..."]; ok && r.floor == testSide {
			return r, true
		}
		i := strings.LastIndex(prefix, "/")
		if i < 0 {
			return room{}, false
		}
		prefix = prefix[:i]
	}
}

// checkRooms compares the rows with the packages.
func (t *tree) checkRooms() {
	for name, r := range t.rooms {
		base, whole := strings.CutSuffix(name, "/...")
		found := false
		for _, p := range t.packages {
			found = found || p.name == base || whole && strings.HasPrefix(p.name, base+"/")
		}
		if !found {
			t.problem(r.line, "%s has a row and no package", name)
		}
	}
	for _, p := range t.packages {
		if _, ok := t.room(p.name); !ok {
			t.problem(p.dir, "%s has no row in docs/architecture.md", p.name)
		}
	}
}

// apart reports the rooms that show or try the product and are no part of it: only the command line, which declares
// their commands, may import them.
func apart(name string) bool { return name == "demo" || name == "rehearsal" }

// checkImports compares the imports of a package with the floors. Test files are free.
func (t *tree) checkImports(p *pkg) {
	from, ok := t.room(p.name)
	if !ok || from.floor == testSide {
		return
	}
	for _, f := range p.files {
		if f.test {
			continue
		}
		for _, spec := range f.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue
			}
			dir, own := strings.CutPrefix(imported, t.module+"/")
			if imported == t.module {
				dir, own = ".", true
			}
			if !own {
				continue
			}
			name := t.roomName(dir)
			to, ok := t.room(name)
			switch {
			case !ok: // checkRooms reports it
			case to.floor == testSide:
				t.problem(t.at(spec), "%s imports %s, which serves only tests", p.name, name)
			case to.floor >= from.floor:
				t.problem(t.at(spec), "%s on floor %d imports %s on floor %d", p.name, from.floor, name, to.floor)
			case apart(name) && p.name != "command":
				t.problem(t.at(spec), "%s imports %s, which only command may", p.name, name)
			}
		}
	}
}
