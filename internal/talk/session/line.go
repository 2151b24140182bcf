package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"strconv"
	"time"

	"omniagent/internal/kit/text"
)

// Entry is a record with its number, parent and time.
type Entry struct {
	Number int64
	Parent int64
	Time   time.Time
	Record Record
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// bodyOf appends the JSON form of a record's data, in one line.
func bodyOf(dst []byte, r Record) ([]byte, error) {
	if l, is := r.(Logged); is {
		if body, ok := l.Event.AppendBody(dst); ok {
			return body, nil
		}
	}
	body, err := text.Line(r)
	if ev := eventOf(r); err != nil && ev != nil {
		body, err = text.Line(withEvent(r, fitEvent(ev))) // a bad number must not lose the record
	}
	return append(dst, body...), err
}

// line returns the line of an entry, including the newline.
func (e Entry) line() ([]byte, error) {
	body, err := bodyOf(nil, e.Record)
	if err != nil {
		return nil, err
	}
	return e.append(nil, body), nil
}

// append appends the line of an entry whose data is body.
func (e Entry) append(dst, body []byte) []byte {
	start := len(dst)
	dst = strconv.AppendInt(append(dst, `{"n":`...), e.Number, 10)
	dst = strconv.AppendInt(append(dst, `,"p":`...), e.Parent, 10)
	dst = append(append(append(dst, `,"k":"`...), nameOf(e.Record)...), `","t":"`...)
	dst = append(e.Time.UTC().AppendFormat(dst, timeLayout), '"')
	sum := checksum(dst[start:], body)
	dst = append(append(dst, sumBefore...), "00000000"...)
	for at := len(dst) - 1; sum > 0; at, sum = at-1, sum>>4 {
		dst[at] = "0123456789abcdef"[sum&15]
	}
	return append(append(append(dst, sumBehind...), body...), "}\n"...)
}

const (
	sumBefore = `,"c":"`
	sumBehind = `","d":`
)

// checksum returns the checksum of a line: of everything before the checksum itself, and of the data.
func checksum(before, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // computed only once
	return crc32.Update(crc32.Update(0, table, before), table, data)
}

// head is everything before a record's data.
type head struct {
	number, parent int64
	kind           kind
	name           []byte // name of the kind
	time           []byte
	// offset of the data in the line; 0 if the line has another form and must be decoded to find it
	data int
	sum  []byte // the checksum in hexadecimal digits; nil for a record of version 0.1, which has none
}

// when returns the time of the record, or the zero time if the line has no readable one.
func (h head) when() time.Time {
	t, _ := time.Parse(time.RFC3339Nano, string(h.time))
	return t
}

// holds reports whether the checksum of a complete line, without its newline, matches.
func (h head) holds(line []byte) bool {
	if len(line) <= h.data || line[len(line)-1] != '}' {
		return false
	}
	if h.sum == nil {
		return true
	}
	sum, err := strconv.ParseUint(string(h.sum), 16, 32)
	return err == nil && len(h.sum) == 8 && !bytes.ContainsAny(h.sum, "ABCDEF") &&
		uint32(sum) == checksum(line[:h.data-len(sumBefore)-8-len(sumBehind)], line[h.data:len(line)-1])
}

// parseHead reads the head of a line in the form that we write. line may be incomplete.
func parseHead(line []byte) (h head, ok bool) {
	at := 0
	skip := func(s string) bool {
		if len(line)-at < len(s) || string(line[at:at+len(s)]) != s {
			return false
		}
		at += len(s)
		return true
	}
	number := func() (n int64, ok bool) {
		start := at
		for at < len(line) && line[at] >= '0' && line[at] <= '9' && at-start < 16 { // 16 digits fit
			n = 10*n + int64(line[at]-'0')
			at++
		}
		return n, at > start
	}
	word := func(most int) []byte {
		end := bytes.IndexByte(line[at:min(len(line), at+most+1)], '"')
		if end < 0 {
			return nil
		}
		at += end
		return line[at-end : at]
	}
	if ok = skip(`{"n":`); ok {
		h.number, ok = number()
	}
	if ok = ok && skip(`,"p":`); ok {
		h.parent, ok = number()
	}
	if ok = ok && skip(`,"k":"`); ok {
		h.name = word(longestName)
	}
	if ok = ok && skip(`","t":"`); ok {
		h.time = word(30)
	}
	if ok && skip(`","c":"`) {
		h.sum = word(8)
		ok = len(h.sum) == 8
	}
	if ok = ok && skip(`","d":`) && h.name != nil && h.time != nil; !ok {
		return head{}, false
	}
	h.kind, h.data = known(h.name), at
	return h, (h.kind != unknown || nameable(h.name)) && (h.sum != nil || isTime(h.time))
}

// isTime reports whether a line of version 0.1 has a time in our format. A newer line that lost its end has also lost
// its checksum, and must not be mistaken for one of version 0.1.
func isTime(t []byte) bool {
	return len(t) == len(timeLayout) && t[4] == '-' && t[10] == 'T' && t[19] == '.' && t[len(t)-1] == 'Z'
}

// nameable reports whether name could be an unknown kind of record.
func nameable(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' && c != '-' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= longestName
}

// longestName exceeds the length of all names of kinds.
const longestName = 20

// slowHead reads a line of version 0.1 in another form, such as one that an editor has rewritten. A line with a
// checksum has only one form.
func slowHead(line []byte) (h head, data json.RawMessage, ok bool) {
	var l struct {
		N, P int64
		K, T string
		D    json.RawMessage
	}
	into := map[string]any{"n": &l.N, "p": &l.P, "k": &l.K, "t": &l.T, "d": &l.D}
	decoder := json.NewDecoder(bytes.NewReader(line))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return head{}, nil, false
	}
	for decoder.More() {
		name, _ := decoder.Token()
		text, _ := name.(string)
		member := into[text] // nil if the member is missing or repeated; one member was the checksum
		if delete(into, text); member == nil || decoder.Decode(member) != nil {
			return head{}, nil, false
		}
	}
	if _, err := decoder.Token(); err != nil || len(bytes.TrimSpace(line[decoder.InputOffset():])) > 0 {
		return head{}, nil, false
	}
	if l.N <= 0 || l.N >= 1e16 || l.P < 0 || !nameable([]byte(l.K)) || !isTime([]byte(l.T)) || len(l.D) == 0 {
		return head{}, nil, false
	}
	return head{number: l.N, parent: l.P, kind: known([]byte(l.K)), name: []byte(l.K), time: []byte(l.T)}, l.D, true
}

// whole reads the head of a complete line, without its newline. It rejects a line that was changed after it was
// written.
func whole(line []byte) (head, bool) {
	line = bytes.TrimRight(line, "\r")
	if h, ok := parseHead(line); ok && h.holds(line) {
		return h, h.number > 0
	} else if ok && h.sum != nil {
		return head{}, false
	}
	h, _, ok := slowHead(line)
	return h, ok
}

var errNoRecord = errors.New("the line is not a record")

// decode reads a complete line that contains its data.
func decode(line []byte) (Entry, error) { return blobs("").decode(line) }

// decode reads a complete line, and its data from the directory of bodies if it was moved there.
func (b blobs) decode(line []byte) (Entry, error) {
	line = bytes.TrimRight(line, "\r\n")
	var data []byte
	h, ok := parseHead(line)
	if ok && h.holds(line) {
		data = line[h.data : len(line)-1]
	} else if ok && h.sum != nil {
		return Entry{}, errNoRecord
	} else if h, data, ok = slowHead(line); !ok {
		return Entry{}, errNoRecord
	}
	e := Entry{Number: h.number, Parent: h.parent, Time: h.when()}
	data, err := b.resolve(data)
	if err != nil {
		return e, err
	}
	e.Record, err = decodeRecord(h, data)
	if ev := eventOf(e.Record); ev != nil {
		ev.Seq, ev.Time = e.Number, e.Time
	}
	return e, err
}

func decodeRecord(h head, data []byte) (Record, error) {
	switch h.kind {
	case kindBegin:
		return as[Begin](data)
	case kindMessage:
		return as[Message](data)
	case kindEnd:
		return as[End](data)
	case kindCompacted:
		return as[Compacted](data)
	case kindAdopted:
		return as[Adopted](data)
	case kindChanged:
		return as[Changed](data)
	case kindTodos:
		return as[Todos](data)
	case kindDenied:
		return as[Denied](data)
	case kindLogged, kindMark:
		return logged(h, data)
	}
	if !json.Valid(data) {
		return nil, errNoRecord
	}
	return Unknown{string(h.name), bytes.Clone(data)}, nil
}

func as[T Record](data []byte) (Record, error) {
	var r T
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, err
	}
	return r, nil
}
