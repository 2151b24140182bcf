package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/lines"
	"omniagent/internal/sys/workspace"
)

// The chain of hashes.
//
// A line ends in three members: seq, the number of the entry; prev_hash, the hash of the entry before it, "" for the
// first one; and hash, the SHA-256 of the line's bytes in front of `,"hash":"`. A writer holds the lock while it reads
// the last entry, appends its own, and writes the head.
//
//	lock ─▶ tidy, rotate ─▶ last entry or head, the newer one ─▶ append ─▶ head ─▶ unlock
//
// A writer that is killed behind append leaves a head that is one entry behind, which does not count as damage. If the
// log is behind the head, its end was removed: the next entry follows the head, so the gap stays visible.

// mark identifies an entry of the chain. The zero mark is before the first entry.
type mark struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// head is the content of the small file beside the log.
type head struct {
	Last    mark `json:"last"`    // the newest entry
	Removed mark `json:"removed"` // the newest entry that retention removed
}

// link is the chain's part of a line.
type link struct {
	mark
	Prev string `json:"prev_hash"`
}

const (
	hashStart = `,"hash":"`
	linkSize  = 180 // what the chain adds to a line at most, with its newline
)

// covered returns how many bytes of a line its hash covers, or -1 if the line does not end in a hash.
func covered(line []byte) int {
	n := len(line) - len(hashStart) - 2*sha256.Size - len(`"}`)
	if n < 0 || !bytes.HasPrefix(line[n:], []byte(hashStart)) || !bytes.HasSuffix(line, []byte(`"}`)) {
		return -1
	}
	return n
}

// linkOf reads the chain's part of a line. It does not check the hash.
func linkOf(line []byte) (k link, ok bool) {
	return k, covered(line) >= 0 && json.Unmarshal(line, &k) == nil && k.Seq > 0
}

// intact reports whether a line has the bytes that its hash covers.
func (k link) intact(line []byte) bool { return k.Hash == hashOf(line[:covered(line)]) }

func hashOf(covers []byte) string {
	sum := sha256.Sum256(covers)
	return hex.EncodeToString(sum[:])
}

// chained returns the line with its place behind m, and the mark of the line.
func (m mark) chained(line []byte) ([]byte, mark) {
	next := mark{Seq: m.Seq + 1}
	out := append(bytes.TrimSuffix(line, []byte("}")), `,"seq":`+strconv.FormatInt(next.Seq, 10)...)
	out = append(out, `,"prev_hash":"`+m.Hash+`"`...)
	next.Hash = hashOf(out)
	return append(out, hashStart+next.Hash+`"}`...), next
}

func (l *Log) headPath() string { return l.path + ".head" }

// readHead returns the content of the head file. ok is false if there is none, or it is damaged.
func (l *Log) readHead() (h head, ok bool) {
	text, err := workspace.ReadFile(l.headPath(), 1<<10)
	return h, err == nil && json.Unmarshal(text, &h) == nil
}

// writeHead does not sync, because the log does not either.
func (l *Log) writeHead(h head) error {
	text, err := json.Marshal(h)
	if err != nil {
		return fault.New(fault.Internal, "the head of the audit log cannot be encoded").Because(err)
	}
	return workspace.Replace(l.headPath(), append(text, '\n'), 0o600)
}

// head returns the head of the chain: the newer of the head file and the last entry. The caller has the lock.
func (l *Log) head() head {
	h, known := l.readHead()
	newest := lastMark(l.path)
	if newest.Seq == 0 { // the file is new
		for _, n := range l.numbers() {
			if newest = lastMark(l.numbered(n)); newest.Seq > 0 {
				break
			}
		}
	}
	if newest.Seq > h.Last.Seq {
		h.Last = newest
	}
	if !known && newest.Seq > 0 {
		h.Removed = l.beforeFirst()
	}
	return h
}

// beforeFirst returns the mark in front of the first entry that is left.
func (l *Log) beforeFirst() mark {
	for _, path := range l.Files() {
		f, _, err := workspace.OpenRegular(path)
		if err != nil {
			continue
		}
		defer f.Close()
		for in := lines.NewReader(f, maxLine); in.Next(); {
			if k, ok := linkOf(in.Text); ok {
				return mark{k.Seq - 1, k.Prev}
			}
		}
	}
	return mark{}
}

// lastMark returns the mark of the last entry of a file that is part of the chain. It reads the end of the file only.
func lastMark(path string) mark {
	f, size, err := workspace.OpenRegular(path)
	if err != nil {
		return mark{}
	}
	defer f.Close()
	for window := int64(4 << 10); ; window *= 8 {
		begin := max(0, size-window)
		text := make([]byte, size-begin)
		if n, err := f.ReadAt(text, begin); err != nil && n < len(text) {
			return mark{}
		}
		for len(text) > 0 {
			start := bytes.LastIndexByte(text, '\n') + 1
			if start == 0 && begin > 0 {
				break // the line begins in front of the window
			}
			if k, ok := linkOf(text[start:]); ok {
				return k.mark
			}
			text = text[:max(0, start-1)]
		}
		if begin == 0 || window > maxLine {
			return mark{}
		}
	}
}

// Remove removes the oldest rotated file and records where the rest of the chain begins. It refuses any other file,
// which would leave a hole.
func (l *Log) Remove(path string) error {
	held, err := l.lock()
	if err != nil {
		return err
	}
	defer func() { _ = held.Unlock() }()
	numbers := l.numbers()
	if len(numbers) == 0 || l.numbered(slices.Max(numbers)) != path {
		return fault.New(fault.Conflicting, "%s is not the oldest file of the audit log", path).With("path", path)
	}
	h := l.head()
	return l.remove(&h, path)
}

// remove records first what is removed: a crash between both leaves entries in front of the recorded beginning, which
// does not count as damage. The caller has the lock.
func (l *Log) remove(h *head, path string) error {
	if last := lastMark(path); last.Seq > h.Removed.Seq {
		h.Removed = last
		if err := l.writeHead(*h); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unwritable(path, err)
	}
	return nil
}
