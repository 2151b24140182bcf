package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// tenMegabytes is a file of ten megabytes, and a thousand edits all over it.
func tenMegabytes(ending string) (text string, edits []object) {
	var b strings.Builder
	line := 0
	for ; b.Len() < 10<<20; line++ {
		fmt.Fprintf(&b, "\tvalue%07d := compute(input, %d) // a line as there are many%s", line, line%97, ending)
	}
	for i := range 1000 {
		n := i * (line / 1000)
		edits = append(edits, object{
			"old_string": fmt.Sprintf("\tvalue%07d := compute(input, %d) // a line as there are many\n", n, n%97),
			"new_string": fmt.Sprintf("\tvalue%07d := calculate(input)\n", n),
		})
	}
	return b.String(), edits
}

func BenchmarkMultiEdit(b *testing.B) {
	for name, ending := range map[string]string{"unix": "\n", "windows": "\r\n"} {
		b.Run(name, func(b *testing.B) {
			text, edits := tenMegabytes(ending)
			d := newDesk(b)
			raw, err := json.Marshal(object{"file_path": "a", "edits": edits})
			check(b, err)
			for b.Loop() {
				b.StopTimer()
				d.put("a", text)
				d.env.Seen = &Seen{}
				b.StartTimer()
				d.says(MultiEdit, string(raw))
			}
		})
	}
}

// BenchmarkEdit is one edit of the same file, with the disk: a thousand of them are a thousand files of ten megabytes
// made durable.
func BenchmarkEdit(b *testing.B) {
	text, edits := tenMegabytes("\n")
	d := newDesk(b)
	d.put("a", text)
	i := 0
	for b.Loop() {
		e := edits[i%len(edits)]
		if i/len(edits)%2 == 1 { // and back
			e = object{"old_string": e["new_string"], "new_string": e["old_string"]}
		}
		i++
		d.says(Edit, object{"file_path": "a", "old_string": e["old_string"], "new_string": e["new_string"]})
	}
}

func BenchmarkRead(b *testing.B) {
	text, _ := tenMegabytes("\n")
	d := newDesk(b)
	d.put("a", text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d.says(Read, object{"file_path": "a", "offset": 1000})
	}
}
