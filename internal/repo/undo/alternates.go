package undo

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"omniagent/internal/sys/workspace"
)

// A repository may borrow objects from others, which its file objects/info/alternates names. Without that file it is
// broken, so a turn keeps its content.

func readAlternates(common string) []byte {
	data, _ := workspace.ReadFile(filepath.Join(common, "objects", "info", "alternates"), jsonLimit)
	return data
}

func (p *place) alternatesFile(common, id string) string {
	return filepath.Join(p.turn(id), "alternates-"+key(common))
}

func (p *place) keepAlternates(common, id string) error {
	data := readAlternates(common)
	if data == nil {
		return nil
	}
	return workspace.Replace(p.alternatesFile(common, id), data, 0o600)
}

// alternates returns the content of that file of a repository before a turn, or nil if there was none.
func (p *place) alternates(common, id string) []byte {
	data, _ := workspace.ReadFile(p.alternatesFile(common, id), jsonLimit)
	return data
}

// lacksLines returns the lines of was that is lacks.
func lacksLines(was, is []byte) []byte {
	still := slices.Collect(bytes.Lines(is))
	var lacks []byte
	for line := range bytes.Lines(was) {
		if !slices.ContainsFunc(still, func(has []byte) bool { return bytes.Equal(trim(has), trim(line)) }) {
			lacks = append(lacks, line...)
		}
	}
	return lacks
}

func trim(line []byte) []byte { return bytes.TrimRight(line, "\r\n") }

// stagedAlternates is the name under which the file is written first, in a directory .git.
var stagedAlternates = filepath.Join("objects", "info", "tmp_omniagent_alternates")

// borrow adds to the file of a repository the lines that it lacks. Others stay: to borrow more does no harm.
func (o objects) borrow(root *os.Root) error {
	gitDir := filepath.FromSlash(o.gitDir)
	name, staged := filepath.Join(gitDir, "objects", "info", "alternates"), filepath.Join(gitDir, stagedAlternates)
	is, _ := root.ReadFile(name)
	lacks := lacksLines(o.borrowing, is)
	if len(lacks) == 0 {
		return nil
	}
	if len(is) > 0 && !bytes.HasSuffix(is, []byte("\n")) {
		is = append(is, '\n')
	}
	err := root.WriteFile(staged, append(is, lacks...), 0o644)
	if err == nil {
		err = root.Rename(staged, name)
	}
	if err != nil {
		_ = root.Remove(staged)
	}
	return err
}
