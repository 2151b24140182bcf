package tree

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// longest returns the length of the longest common subsequence, by the plain algorithm.
func longest(a, b [][]byte) int {
	above := make([]int, len(b)+1)
	for _, x := range a {
		row := make([]int, len(b)+1)
		for j, y := range b {
			if row[j+1] = max(row[j], above[j+1]); bytes.Equal(x, y) {
				row[j+1] = above[j] + 1
			}
		}
		above = row
	}
	return above[len(b)]
}

// TestFewestLines compares short random texts: what is left of both is the same, and no more could be left.
func TestFewestLines(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		text := func() [][]byte {
			var b strings.Builder
			for range random.IntN(12) {
				b.WriteString(strings.Repeat("x", random.IntN(4)) + "\n")
			}
			return splitLines([]byte(b.String()))
		}
		before, after := text(), text()
		removed, added := compareLines(before, after)
		left, right := unmarked(before, removed), unmarked(after, added)
		same := bytes.Equal(bytes.Join(left, nil), bytes.Join(right, nil))
		if !same || len(left) != longest(before, after) {
			t.Fatalf("%q and %q: %q and %q are left", before, after, left, right)
		}
	}
}

func unmarked(lines [][]byte, marks []bool) [][]byte {
	var left [][]byte
	for i, line := range lines {
		if !marks[i] {
			left = append(left, line)
		}
	}
	return left
}

// TestHostileTexts are compared in bounded time, and correctly all the same.
func TestHostileTexts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(n, kinds int) [][]byte {
		lines := make([][]byte, n)
		for i := range lines {
			lines[i] = []byte{byte(random.IntN(kinds)), '\n'}
		}
		return lines
	}
	for _, n := range []int{10_000, 1 << 20} {
		for _, kinds := range []int{2, 50} {
			before, after := text(n, kinds), text(n, kinds)
			began := time.Now()
			removed, added := compareLines(before, after)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%d lines of %d kinds took %v", n, kinds, took)
			} else {
				t.Logf("%d lines of %d kinds took %v", n, kinds, took)
			}
			left, right := unmarked(before, removed), unmarked(after, added)
			if !bytes.Equal(bytes.Join(left, nil), bytes.Join(right, nil)) {
				t.Errorf("%d lines of %d kinds: what is left differs", n, kinds)
			}
		}
	}
}

func FuzzLoad(f *testing.F) {
	root := f.TempDir()
	store := OpenStore(f.TempDir())
	for range 2 {
		x, err := Take(f.Context(), root, Options{Store: store})
		if err != nil {
			f.Fatal(err)
		}
		var file bytes.Buffer
		if err := x.Save(&file); err != nil {
			f.Fatal(err)
		}
		f.Add(file.Bytes())
		root = "." // this package
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = Load(bytes.NewReader(data))
		body, _ := bytes.CutPrefix(data, []byte(firstLine))
		for _, body := range [][]byte{body, body[:max(len(body)-32, 0)]} { // a wrong checksum hides the rest
			x, err := parse(body)
			if err != nil {
				continue
			}
			var file bytes.Buffer
			if err := x.Save(&file); err != nil {
				t.Fatal(err)
			}
			again, err := Load(&file)
			if err != nil {
				t.Fatal(err)
			}
			if c := Diff(x, again); len(c.Files) > 0 {
				t.Fatalf("%v differ after Save and Load", c.Files)
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
	var file bytes.Buffer
	if err := x.Save(&file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Len() {
		data := bytes.Clone(file.Bytes())
		data[i] ^= 1
		if _, err := Load(bytes.NewReader(data)); err == nil {
			t.Errorf("byte %d is damaged, which is not noticed", i)
		}
		if _, err := Load(bytes.NewReader(file.Bytes()[:i])); err == nil {
			t.Errorf("only %d bytes are left, which is not noticed", i)
		}
	}
}
