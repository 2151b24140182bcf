package session

import (
	"encoding/json"
	"strconv"

	"omniagent/internal/kit/text"
)

// AppendRow appends an entry as a line of JSON for programs, with its newline: the members seq, time, turn and kind,
// then those of its event, or of the record if it has no event. The same record always has the same row. Damage has no
// seq and no time. The data of an unknown record is in one member, so that it cannot be mistaken for our members.
func (e Entry) AppendRow(dst []byte) ([]byte, error) {
	if d, is := e.Record.(Damaged); is {
		body, err := text.Line(d)
		return members(append(dst, `{"kind":"damaged"`...), body), err
	}
	turn, body, err := rowBody(e.Record)
	if err != nil {
		return dst, err
	}
	dst = strconv.AppendInt(append(dst, `{"seq":`...), e.Number, 10)
	dst = append(e.Time.UTC().AppendFormat(append(dst, `,"time":"`...), timeLayout), `","turn":`...)
	dst = strconv.AppendInt(dst, turn, 10)
	dst = append(append(append(dst, `,"kind":"`...), nameOf(e.Record)...), '"')
	return members(dst, body), nil
}

// members appends the members of an object to another object that already has some, and closes it.
func members(dst, object []byte) []byte {
	if len(object) > 2 {
		dst = append(append(dst, ','), object[1:len(object)-1]...)
	}
	return append(dst, "}\n"...)
}

func rowBody(r Record) (turn int64, body []byte, err error) {
	if ev := eventOf(r); ev != nil {
		e := *ev
		turn, e.Kind, e.Turn = e.Turn, "", 0
		body, err = text.Line(e)
		return turn, body, err
	}
	switch v := r.(type) {
	case Message:
		turn, v.Turn = v.Turn, 0
		r = v
	case Unknown:
		body, err = text.Line(struct {
			Data json.RawMessage `json:"data"`
		}{v.Data})
		return 0, body, err
	}
	body, err = text.Line(r)
	return turn, body, err
}
