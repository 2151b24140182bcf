package undo

import (
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/repo/snapshot"
	"omniagent/internal/sys/workspace"
)

// A loose object is pinned by a hard link, so that git's own format can be read: a repository may have thousands of
// them, and creating a file costs much more than writing one. What somebody writes into such a file reaches both names.
// So its bytes are also kept, many objects in one file, and a damaged object is restored from them before a turn is
// undone.

// looseLimit is the size up to which a loose object is kept in this way. A larger one is copied as a file.
const looseLimit = 16 << 20

func isLoose(name string, _ fs.FileInfo) bool { return !strings.HasPrefix(name, "pack/") }

func isSmall(_ string, info fs.FileInfo) bool { return info.Size() <= looseLimit }

// looseObjects is the store of the bytes of loose objects.
func (p *place) looseObjects() *snapshot.Store {
	return snapshot.OpenStore(filepath.Join(p.dir, "loose"))
}

// looseFile lists the loose objects of a repository whose bytes are kept, each with their SHA-256.
func (p *place) looseFile(repository string) string { return filepath.Join(p.dir, "loose-"+repository) }

// keepLoose keeps the bytes of pinned loose objects.
func (p *place) keepLoose(repository string, names []string) error {
	contents := p.looseObjects()
	defer contents.Close()
	sums := map[string][32]byte{}
	for _, name := range names {
		at := filepath.Join(p.dir, "git", repository, "objects", filepath.FromSlash(name))
		info, err := os.Lstat(at)
		if strings.HasPrefix(name, "pack/") || err != nil || !isSmall(name, info) {
			continue
		}
		data, err := os.ReadFile(at)
		if err != nil {
			continue // nobody could read it from the repository
		}
		if sums[name], err = contents.Put(data); err != nil {
			return err
		}
	}
	if len(sums) == 0 {
		return nil
	}
	maps.Insert(sums, maps.All(p.looseSums(repository)))
	return p.writeLoose(repository, sums)
}

func (p *place) writeLoose(repository string, sums map[string][32]byte) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[name]
		fmt.Fprintf(&text, "%s %s\n", name, hex.EncodeToString(sum[:]))
	}
	return workspace.Replace(p.looseFile(repository), []byte(text.String()), 0o600)
}

// looseSums returns the loose objects of a repository whose bytes are kept.
func (p *place) looseSums(repository string) map[string][32]byte {
	sums := map[string][32]byte{}
	for _, line := range namesIn(p.looseFile(repository)) {
		name, digits, _ := strings.Cut(line, " ")
		if sum, err := hex.DecodeString(digits); err == nil && len(sum) == 32 {
			sums[name] = [32]byte(sum)
		}
	}
	return sums
}

// repair rewrites the damaged loose objects that a turn has pinned. It leaves one that it cannot repair: that is an
// error only when the object is needed.
func (p *place) repair(id string) error {
	lists, err := namesOf(p.turn(id), "objects-")
	for _, list := range lists {
		repository := strings.TrimPrefix(list, "objects-")
		sums := p.looseSums(repository)
		dir := filepath.Join(p.dir, "git", repository, "objects")
		for _, name := range damagedIn(dir, namesIn(filepath.Join(p.turn(id), list)), isLoose) {
			sum, kept := sums[name]
			if !kept {
				continue
			}
			data, err := p.looseObjects().Get(sum, looseLimit)
			if err != nil {
				continue
			}
			if err := workspace.Replace(filepath.Join(dir, filepath.FromSlash(name)), data, 0o444); err != nil {
				return err
			}
		}
	}
	return err
}

// sweepLoose deletes the bytes of loose objects that are not pinned any more.
func (p *place) sweepLoose(repositories []string) error {
	wanted := map[[32]byte]bool{}
	for _, repository := range repositories {
		sums := p.looseSums(repository)
		dir := filepath.Join(p.dir, "git", repository, "objects")
		maps.DeleteFunc(sums, func(name string, _ [32]byte) bool {
			return !exists(filepath.Join(dir, filepath.FromSlash(name)))
		})
		if err := p.writeLoose(repository, sums); err != nil {
			return err
		}
		for _, sum := range sums {
			wanted[sum] = true
		}
	}
	return p.looseObjects().Retain(func(sum [32]byte) bool { return wanted[sum] })
}
