package guard

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// readOnly lists the commands that run unasked where no walls contain them. With only the one-letter flags after its
// name, each of them writes, runs and unpacks nothing, and ends. Its operands, if it has any, are a number, or files to
// read. The first operand of grep is a pattern, and that of sed the lines to print. For the names in the first line,
// all words are data.
const readOnly = `
words: : basename dirname echo false groups id nproc pwd tr true type uname uptime which whoami
number: sleep
cd:
none: date uR
none: uniq cdDfisuwz
lines: sed n
pattern: grep abcilmnoqrsvwxABCEFGHILP
files: cat bensvtuAET
files: cmp bils
files: comm 123
files: cut bcdfns
files: df ahiklPT
files: du abcdhkmsx
files: file bhikLr
files: fold bsw
files: head cnqv
files: ls abcdfghiklmnopqrstuvxABCFGQRSUX1
files: md5sum bt
files: nl abdfhilnprstvwz
files: od abcdfijlostvwxAN
files: paste ds
files: readlink efmnqs
files: realpath emqs
files: rev
files: sha1sum bt
files: sha256sum bt
files: sha512sum bt
files: sort bcdfghiknrstuMRV
files: stat cftL
files: tac brs
files: tail cnqv
files: wc clmwL
`

// listedAs returns what the operands of a command are in that list, and its flags.
func listedAs(name string) (operands, flags string, listed bool) {
	for line := range strings.Lines(readOnly) {
		operands, list, _ := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(list)
		switch {
		case operands == "words":
			if slices.Contains(words, name) {
				return operands, "", true
			}
		case operands == "cd" && name == "cd":
			return operands, "", true
		case len(words) > 0 && words[0] == name:
			return operands, strings.Join(words[1:], ""), true
		}
	}
	return "", "", false
}

// unlisted returns why a simple command does not run unasked where no walls contain it, or "".
func (w *walker) unlisted(argv []word, at dirs) string {
	for _, a := range argv {
		if !a.literal() {
			return "a word is not known before it runs: " + cmp.Or(a.why, "a pattern becomes the names of files")
		}
	}
	name := argv[0].text
	operands, flags, listed := listedAs(name)
	switch {
	case !listed:
		return name + " is not among the commands that run unasked"
	case operands == "words":
		return ""
	}
	var files []word
	tree := false
	for _, a := range argv[1:] {
		switch {
		case strings.HasPrefix(a.text, "+") && strings.Trim(a.text[1:], "0123456789") != "": // old flags: tail +1f
			return name + " " + a.text + " is not among the flags that run unasked"
		case !strings.HasPrefix(a.text, "-") || a.text == "-":
			files = append(files, a)
		case strings.HasPrefix(a.text, "--") || strings.Trim(a.text[1:], flags+"0123456789,:-") != "":
			return name + " " + a.text + " is not among the flags that run unasked"
		default:
			tree = tree || name == "grep" && strings.Contains(a.text, "r")
		}
	}
	switch {
	case operands == "none" && len(files) > 0:
		return name + " runs unasked only without operands"
	case operands == "number" && (len(files) != 1 || strings.Trim(files[0].text, "0123456789.") != ""):
		return name + " runs unasked only with a number"
	case operands == "number":
		return ""
	case operands == "cd" && (len(files) != 1 || files[0].text == "-" || files[0].text == ""):
		return "cd runs unasked only with the name of one directory"
	case operands == "lines" &&
		(len(files) == 0 || !regexp.MustCompile(`^\d+(,(\d+|\$))?p$`).MatchString(files[0].text)):
		return "sed runs unasked only with the numbers of lines to print, such as 10,20p"
	case (operands == "lines" || operands == "pattern") && len(files) > 0:
		files = files[1:] // or the value of a flag, which is a number
	}
	if tree && len(files) == 0 {
		files = []word{{text: ".", known: true}}
	}
	for _, one := range files {
		paths, why, _ := w.reading(one, at)
		for _, path := range paths {
			if why == "" && tree && w.place.credential(path, true) {
				why = "credentials are beneath " + path
			}
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// reads records that a piece reads a file, and denies it if credentials are there.
func (w *walker) reads(p *piece, file word, at dirs) {
	paths, why, decision := w.reading(file, at)
	p.reads = append(p.reads, paths...)
	if decision == Deny {
		p.bar(why)
	}
}

// reading returns the paths of a file to read, why reading it is not approved, or "", and how strict that is.
func (w *walker) reading(file word, at dirs) (paths []string, why string, strict Decision) {
	switch {
	case !file.known:
		return nil, "the file is not known before it runs", Ask
	case file.text == "" || file.text == "-" || file.text == "/dev/null":
		return nil, "", Allow
	case at.lost && !filepath.IsAbs(file.text):
		return nil, "the directory is not known", Ask
	case strings.ContainsFunc(file.text, control):
		return nil, "the name has control characters", Ask
	}
	list := at.list
	if filepath.IsAbs(file.text) {
		list = []string{"/"}
	}
	for _, dir := range list {
		first := resolve(dir, file.text)
		if file.pattern {
			first, why, strict = fixedPart(first), "a pattern becomes the names of files", Ask
		}
		all := append([]string{first}, w.place.physical(dir, file.text)...)
		paths = append(paths, all...)
		for i, path := range all {
			link := ""
			if i > 0 {
				link = "a link leads to " + path + ": "
			}
			if v := w.set.Read(path, w.place); v.Decision == Deny {
				return paths, link + v.Reasons[0].Text, Deny
			} else if w.place.root(path) == "" {
				why, strict = link+"it reads outside the workspace", Ask
			}
		}
	}
	return paths, why, strict
}
