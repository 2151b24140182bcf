// Package git reads the index, the blobs and the refs of a repository, and knows its other files, without the program
// git.
//
// A repository is data that somebody else chose. Package git starts nothing that it names: no hook, no filter, no
// monitor, no transport. It opens regular files only, so it never blocks on a FIFO; it writes nothing; and what it
// allocates is limited by the caller or by the size of a file that exists. A blob is returned only if its content has
// the hash that was asked for.
//
// It refuses what it does not know: a split index, and objects that only a remote has.
package git

import (
	"crypto/sha1" //nolint:gosec // the hash of git
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/gitconfig"
	"omniagent/internal/sys/workspace"
)

// ID is the name of an object, its hash. One of SHA-1 ends in zeros.
type ID [sha256.Size]byte

// SmallFile is the limit, in bytes, of the files that name other places, such as commondir.
const SmallFile = 1 << 20

// Repository says where the files of a git repository are.
type Repository struct {
	dir    string // of this working tree
	common string // of all working trees of the repository
	size   int    // bytes of a hash
	stores []*objects
	opened bool
}

// Open opens the repository of a working tree. top has a directory .git, or a link or a file of that name which leads
// to it. Dir returns the real directory.
func Open(top string) (*Repository, error) {
	dir := filepath.Join(top, ".git")
	info, err := os.Lstat(dir)
	if err == nil && info.IsDir() {
		return At(dir)
	}
	if text, err := workspace.ReadFile(dir, SmallFile); err == nil {
		to, ok := strings.CutPrefix(string(text), gitFile)
		if !ok {
			return nil, damaged(dir, "it does not name a directory")
		}
		dir = Named(top, to)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return At(dir)
}

// At opens the repository whose own directory, usually called .git, is dir.
func At(dir string) (*Repository, error) {
	r := &Repository{dir: dir, common: dir, size: sha1.Size}
	if text, err := workspace.ReadFile(filepath.Join(dir, "commondir"), SmallFile); err == nil {
		r.common = Named(dir, string(text))
	}
	head := filepath.Join(dir, "HEAD")
	if _, err := workspace.ReadFile(head, SmallFile); err != nil && !NamesRef(LinkAt(head)) {
		return nil, damaged(dir, "it has no HEAD").Because(err)
	}
	if r.configured("objectformat", "sha256") {
		r.size = sha256.Size
	}
	return r, nil
}

// settings returns the settings of the repository, as gitconfig.Settings does.
func (r *Repository) settings() iter.Seq2[string, string] {
	text, _ := workspace.ReadFile(filepath.Join(r.common, "config"), SmallFile)
	return gitconfig.Settings(string(text))
}

// configured reports whether the configuration has a value, in any section.
func (r *Repository) configured(key, value string) bool {
	for k, v := range r.settings() {
		if strings.HasSuffix(k, "."+key) && strings.EqualFold(v, value) {
			return true
		}
	}
	return false
}

// WorkTree returns the working tree that the configuration names, without links, or "".
func (r *Repository) WorkTree() string {
	named := ""
	for k, v := range r.settings() {
		if k == workTree {
			named = v // the last one counts
		}
	}
	if real, err := filepath.EvalSymlinks(absolute(r.dir, named)); err == nil && named != "" {
		return real
	}
	return ""
}

// workTree is the key of the setting that names the working tree.
const workTree = "core.worktree"

// Modes reports whether the index says which files are executable. On some file systems all of them are.
func (r *Repository) Modes() bool { return !r.configured("filemode", "false") }

// Dir returns the repository's own directory, which At takes.
func (r *Repository) Dir() string { return r.dir }

// Sum returns the name of the blob with this content.
func (r *Repository) Sum(content []byte) (id ID) {
	h := hasherOf(r.size)
	h.Write(strconv.AppendInt([]byte("blob "), int64(len(content)), 10))
	h.Write([]byte{0})
	h.Write(content)
	h.Sum(id[:0])
	return id
}

// BlobName returns the name of the blob with this content, as git shows it. Without a repository it is that of SHA-1.
func (r *Repository) BlobName(content []byte) string {
	if r == nil {
		r = &Repository{size: sha1.Size}
	}
	return r.name(r.Sum(content))
}

func (r *Repository) name(id ID) string { return hex.EncodeToString(id[:r.size]) }

// gitFile is the beginning of a file .git.
const gitFile = "gitdir: "

// Named returns the path that a file in a directory names, such as commondir.
func Named(dir, content string) string { return absolute(dir, strings.TrimRight(content, "\r\n")) }

// Movable returns an error if files .git or git directories name a place by an absolute path, which copies of them
// would use too, or if that cannot be read.
func Movable(gits ...string) error {
	for _, at := range gits {
		for _, name := range []string{"", "commondir", "config", "config.worktree"} {
			file := filepath.Join(at, name)
			text, err := workspace.ReadFile(file, SmallFile)
			if name != "" && err != nil && !workspace.Absent(err) {
				return err
			}
			for _, to := range placesIn(name, string(text)) {
				if filepath.IsAbs(to) {
					return fmt.Errorf("%s names %s, which a copy would use too", file, to)
				}
			}
		}
	}
	return nil
}

// placesIn returns the places that a file of a repository names. A file .git has no name here.
func placesIn(name, text string) (places []string) {
	switch name {
	case "":
		return []string{strings.TrimSpace(strings.TrimPrefix(text, gitFile))}
	case "commondir":
		return []string{strings.TrimSpace(text)}
	}
	for key, value := range gitconfig.Settings(text) {
		if key == workTree {
			places = append(places, value)
		}
	}
	return places
}

func absolute(base, path string) string {
	if path = filepath.FromSlash(path); !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return path
}

func damaged(path, format string, args ...any) *fault.Fault {
	return fault.New(fault.Unsafe, "%s cannot be read as a part of a git repository: %s", path,
		fmt.Sprintf(format, args...)).FixBy("the repository is damaged, or too new", "git fsck")
}

// Common returns the directory that all working trees of the repository share.
func (r *Repository) Common() string { return r.common }

// HashSize returns the size of a hash in bytes.
func (r *Repository) HashSize() int { return r.size }
