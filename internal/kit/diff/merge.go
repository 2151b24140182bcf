package diff

import (
	"bytes"
	"slices"
)

// Merge merges the changes that two texts make to their common base. Where changes overlap or touch and are not the
// same, the result has both between conflict markers, as git writes them, with the two names. conflicts is the number
// of such places.
func Merge(base, mine, theirs []byte, nameMine, nameTheirs string) (text []byte, conflicts int) {
	b, m, t := Split(base), Split(mine), Split(theirs)
	w := &merging{names: [2]string{nameMine, nameTheirs}}
	one, two := changesOf(b, m), changesOf(b, t)
	at, shift, shiftTheirs := 0, 0, 0 // in the base, and how far the other two are ahead of it
	for len(one) > 0 || len(two) > 0 {
		from := len(b)
		for _, list := range [][]stretch{one, two} {
			if len(list) > 0 {
				from = min(from, list[0].from)
			}
		}
		w.lines(b[at:from])
		to, mineFrom, theirsFrom := from, from+shift, from+shiftTheirs
		changedMine, changedTheirs := false, false
		for grown := true; grown; {
			grown = false
			for len(one) > 0 && one[0].from <= to {
				to, shift, one, grown, changedMine = max(to, one[0].to), shift+one[0].grows, one[1:], true, true
			}
			for len(two) > 0 && two[0].from <= to {
				to, shiftTheirs, two, grown, changedTheirs = max(to, two[0].to), shiftTheirs+two[0].grows, two[1:],
					true, true
			}
		}
		partMine, partTheirs := m[mineFrom:to+shift], t[theirsFrom:to+shiftTheirs]
		switch {
		case !changedTheirs || slices.EqualFunc(partMine, partTheirs, bytes.Equal):
			w.lines(partMine)
		case !changedMine:
			w.lines(partTheirs)
		default:
			w.conflict(partMine, partTheirs)
		}
		at = to
	}
	w.lines(b[at:])
	return w.text, w.conflicts
}

// Common returns the lines that two texts share, in order: the base of texts whose base is not known.
func Common(one, two []byte) (text []byte) {
	lines := Split(one)
	removed, _ := Lines(lines, Split(two))
	for i, line := range lines {
		if !removed[i] {
			text = append(text, line...)
		}
	}
	return text
}

// stretch is a part of the base that a text has changed.
type stretch struct{ from, to, grows int }

func changesOf(base, text [][]byte) (list []stretch) {
	removed, added := Lines(base, text)
	for i, j := 0, 0; i < len(base) || j < len(text); {
		if i < len(base) && j < len(text) && !removed[i] && !added[j] {
			i, j = i+1, j+1
			continue
		}
		fromBase, fromText := i, j
		for i < len(base) && removed[i] {
			i++
		}
		for j < len(text) && added[j] {
			j++
		}
		list = append(list, stretch{fromBase, i, (j - fromText) - (i - fromBase)})
	}
	return list
}

// merging is a merged text under construction.
type merging struct {
	text      []byte
	conflicts int
	names     [2]string
}

func (w *merging) lines(lines [][]byte) {
	for _, line := range lines {
		w.text = append(w.text, line...)
	}
}

// conflict writes both parts, without what they begin and end with together.
func (w *merging) conflict(mine, theirs [][]byte) {
	w.conflicts++
	same := 0
	for same < min(len(mine), len(theirs)) && bytes.Equal(mine[same], theirs[same]) {
		same++
	}
	w.lines(mine[:same])
	mine, theirs = mine[same:], theirs[same:]
	end := 0
	for end < min(len(mine), len(theirs)) && bytes.Equal(mine[len(mine)-1-end], theirs[len(theirs)-1-end]) {
		end++
	}
	w.mark("<<<<<<< " + w.names[0])
	w.lines(mine[:len(mine)-end])
	w.mark("=======")
	w.lines(theirs[:len(theirs)-end])
	w.mark(">>>>>>> " + w.names[1])
	w.lines(mine[len(mine)-end:])
}

// mark writes a line of its own.
func (w *merging) mark(line string) {
	if len(w.text) > 0 && w.text[len(w.text)-1] != '\n' {
		w.text = append(w.text, '\n')
	}
	w.text = append(append(w.text, line...), '\n')
}
