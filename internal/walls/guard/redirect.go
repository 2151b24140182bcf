package guard

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// redirect judges a redirection. Unasked run only those to /dev/null, and to another of the first three descriptors.
func (w *walker) redirect(r *syntax.Redirect, at dirs) {
	w.visited[r] = true
	if r.N != nil && !slices.Contains([]string{"0", "1", "2"}, r.N.Value) {
		w.say(Ask, r, notPlain)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		if r.Hdoc != nil {
			w.read(r.Hdoc, at)
		}
		w.say(Ask, r, notPlain)
	case syntax.WordHdoc:
		p := piece{shape: structure, decision: Ask, text: clip(slice(w.source, r)), why: notPlain}
		w.secret(&p, w.read(r.Word, at), at) // xargs and loops open what they read
		w.add(p)
	case syntax.RdrIn:
		w.input(r, at)
	case syntax.DplIn, syntax.DplOut:
		got := w.read(r.Word, at)
		switch digits := got.literal() && strings.Trim(got.text, "0123456789-") == ""; {
		case r.Op == syntax.DplOut && !digits:
			w.output(r, at)
		case r.Op == syntax.DplIn || got.text != "1" && got.text != "2":
			w.say(Ask, r, notPlain)
		}
	default:
		w.output(r, at)
	}
}

// plainDelimiter reports whether the delimiter of a here-document is one plain word: bare, in quotes or behind a
// backslash.
func plainDelimiter(s string) bool {
	if len(s) > 2 && (s[0] == '\'' || s[0] == '"') && s[len(s)-1] == s[0] {
		s = s[1 : len(s)-1]
	} else {
		s = strings.TrimPrefix(s, `\`)
	}
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}

func (w *walker) input(r *syntax.Redirect, at dirs) {
	got := w.read(r.Word, at)
	p := piece{shape: structure, decision: Ask, text: clip(slice(w.source, r)), why: notPlain}
	w.reads(&p, got, at)
	if devicePath(got.text) {
		p.connects()
	}
	w.argument(&p, got, at)
	w.add(p)
}

func devicePath(path string) bool {
	path = strings.ToLower(path)
	return strings.HasPrefix(path, "/dev/tcp/") || strings.HasPrefix(path, "/dev/udp/")
}

// output judges > and everything else that opens a file for writing.
func (w *walker) output(r *syntax.Redirect, at dirs) {
	got := w.read(r.Word, at)
	w.alter(got, at, Alteration{
		Whole: r.Op != syntax.AppOut && r.Op != syntax.AppAll && r.Op != syntax.RdrInOut, Edit: w.written(r),
	})
	p := piece{shape: redirect, text: clip(slice(w.source, r)), inner: w.depth > 0}
	switch {
	case devicePath(got.text):
		p.connects()
	case got.literal() && got.text == "/dev/null" && r.Op != syntax.RdrInOut:
	case !got.literal():
		p.shape, p.decision, p.why = structure, Ask, "the file that is written is not known before it runs"
		if strings.HasPrefix(slice(w.source, r.Word), "/dev/tcp") {
			p.connects()
		}
		w.target(&p, got, change{}, at)
		w.argument(&p, got, at)
		p.expand(w.place, w.survey.line)
		p.writes, p.reads, p.patterns = p.reads, nil, nil
	case at.lost:
		p.shape, p.decision, p.why = structure, Ask, "a file is written in a directory that is not known"
		w.secret(&p, got, at)
		w.target(&p, got, change{}, at)
		if v := w.set.Write(got.text, w.place); v.Decision > Allow && !p.never &&
			w.place.Agents.protectedAnywhere(got.text) {
			p.decision, p.why = Deny, v.Reasons[0].Text
			p.reaches(guarded, p.why)
		}
	default:
		for _, dir := range at.list {
			path := resolve(dir, got.text)
			p.writes = append(p.writes, path)
			w.changes(&p, path, false, change{})
			v := w.set.Write(path, w.place)
			switch {
			case v.Decision == Allow:
				p.say(Ask, "it writes a file")
			case w.place.credential(path, false):
				p.bar(v.Reasons[0].Text)
			case w.place.root(path) != "" || w.place.Agents.protectedAnywhere(path):
				p.decision, p.why = Deny, v.Reasons[0].Text
			default:
				// A file tool is denied there; a command is asked about, because a person may want to write to /tmp.
				p.shape = structure
				p.say(Ask, "it writes a file outside the workspace")
			}
		}
	}
	w.add(p)
}
