package guard

import (
	"path/filepath"
	"slices"
	"strings"
)

// Alteration is a change of a path that the words of a line name.
type Alteration struct {
	Path    string // absolute
	From    string // the path that is moved there; "": none
	Whole   bool   // the content is replaced
	Removes bool
	Beneath bool // and everything below
	Sure    bool // it has certainly run, if the line succeeded
	Edit    Edit // nil: the new content is unknown
}

// Alters lists the changes that the words of a line name if bash runs it in a directory: what is written, made, moved
// or removed under a name in the line. It does not include what a program changes without naming it.
func Alters(line, dir, home string) []Alteration {
	return Tools.look(line, Place{Root: dir, Dir: dir, Home: home}).alters
}

// alter records a change of the path that a word names, if it is certain which path that is.
func (w *walker) alter(a word, at dirs, as Alteration) {
	if !a.literal() || a.text == "" || a.text == "-" || at.lost || len(at.list) != 1 ||
		len(w.survey.alters) == maxNodes {
		return
	}
	as.Path, as.Sure = resolve(at.list[0], a.text), w.sure.runs && w.inside == 0
	w.survey.alters = append(w.survey.alters, as)
}

// altered records the changes that the words of a simple command name.
func (w *walker) altered(name string, argv, targets []word, at dirs) {
	args := argv[1:]
	if w.sure.own != &argv[0] { // another command starts it
		defer func(before sureness) { w.sure = before }(w.sure)
		w.sure.runs = false
	}
	switch {
	case name == "mv" || does(ofChangeLast, name, nil):
		w.carried(name, argv, at)
		return
	case slices.Contains([]string{"rm", "rmdir", "unlink"}, name):
		for _, a := range targets {
			w.alter(a, at, Alteration{Removes: true, Beneath: name == "rm", Edit: removed})
		}
		return
	case name == "find":
		return // its -delete is not one of its operands
	}
	whole := name == "tee" && !short(texts(args), "a") && !long(texts(args), "--append")
	if name == "chmod" || name == "chown" || name == "chgrp" { // the first is a mode or an owner
		targets = targets[min(1, len(targets)):]
	}
	var edit Edit
	if name == "touch" {
		edit = touched
	}
	for _, a := range targets {
		w.alter(a, at, Alteration{Whole: whole, Edit: edit})
	}
}

// carried records the changes of a command that puts files at another path: at that path, or in a directory there.
func (w *walker) carried(name string, argv []word, at dirs) {
	operands := slices.DeleteFunc(slices.Clone(argv[1:]), func(a word) bool {
		return !a.literal() || strings.HasPrefix(a.text, "-")
	})
	if len(operands) < 2 || len(operands) != len(operandsOf(texts(argv[1:]))) {
		return
	}
	to := operands[len(operands)-1]
	for _, from := range operands[:len(operands)-1] {
		as := Alteration{Whole: true, Beneath: true}
		if name == "mv" {
			w.alter(from, at, Alteration{Removes: true, Beneath: true})
			if !at.lost && len(at.list) == 1 {
				as.From = resolve(at.list[0], from.text)
			}
		}
		w.alter(to, at, as)
		w.alter(word{text: filepath.Join(to.text, filepath.Base(from.text)), known: true}, at, as)
	}
}
