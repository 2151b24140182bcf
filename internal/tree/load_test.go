package tree

import (
	"bytes"
	"testing"
)

func FuzzLoad(f *testing.F) {
	root := f.TempDir()
	store := OpenStore(f.TempDir())
	for range 2 {
		x, err := Take(f.Context(), root, Options{Store: store})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(x.Encode())
		root = "." // this package
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Parse(data)
		body, _ := bytes.CutPrefix(data, []byte(firstLine))
		for _, body := range [][]byte{body, body[:max(len(body)-32, 0)]} { // a wrong checksum hides the rest
			x, err := parse(body)
			if err != nil {
				continue
			}
			again, err := Parse(x.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if c := Diff(x, again); len(c.Files) > 0 {
				t.Fatalf("%v differ after Encode and Parse", c.Files)
			}
		}
	})
}

// TestDamageIsNoticed changes every byte of a saved index, and cuts it everywhere.
func TestDamageIsNoticed(t *testing.T) {
	x, err := Take(t.Context(), t.TempDir(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	saved := x.Encode()
	for i := range saved {
		data := bytes.Clone(saved)
		data[i] ^= 1
		if _, err := Parse(data); err == nil {
			t.Errorf("byte %d is damaged, which is not noticed", i)
		}
		if _, err := Parse(saved[:i]); err == nil {
			t.Errorf("only %d bytes are left, which is not noticed", i)
		}
	}
}
