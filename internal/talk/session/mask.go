package session

import (
	"bytes"
	"encoding/json"
	"errors"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
)

// masked returns the data of a record without secrets. If masking the data as a whole breaks it, each of its texts is
// masked instead, so that no secret gets into the journal and no mask changes the kind of a record.
func masked(mask func([]byte) []byte, r Record, body []byte) ([]byte, error) {
	clean, err := MaskedJSON(mask, body, func(clean []byte) bool { return fitsRecord(clean, r) })
	if err != nil {
		return nil, fault.New(fault.Internal, "cannot record %s: masking secrets breaks its form", nameOf(r)).
			Because(err)
	}
	return clean, nil
}

// MaskedJSON returns a JSON text without secrets. If masking it as a whole breaks it, so that fits returns false, each
// of its strings is masked instead. It is an error if that does not fit either.
func MaskedJSON(mask func([]byte) []byte, body []byte, fits func([]byte) bool) ([]byte, error) {
	clean := mask(body)
	if bytes.Equal(clean, body) || fits(clean) {
		return clean, nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	clean, err := text.Line(maskedValue(mask, value))
	if err == nil && !fits(clean) {
		err = errors.New("it no longer has its form")
	}
	return clean, err
}

func maskedValue(mask func([]byte) []byte, value any) any {
	switch v := value.(type) {
	case string:
		return string(mask([]byte(v)))
	case []any:
		for i := range v {
			v[i] = maskedValue(mask, v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = maskedValue(mask, v[name])
		}
	}
	return value
}

// fitsRecord reports whether data is valid for a record of the same kind, and is one line.
func fitsRecord(data []byte, r Record) bool {
	if bytes.ContainsAny(data, "\r\n\x00") || !json.Valid(data) || bytes.HasPrefix(data, []byte(blobHead)) {
		return false
	}
	_, err := decodeRecord(head{kind: r.kind(), name: []byte(nameOf(r))}, data)
	return err == nil
}
