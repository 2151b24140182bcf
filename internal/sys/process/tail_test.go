package process

import "testing"

func TestTail(t *testing.T) {
	t.Parallel()
	tail := &Tail{Most: 4}
	for _, step := range []struct{ written, want string }{
		{"", ""}, {"ab", "ab"}, {"cde", "bcde"}, {"f", "cdef"}, {"0123456789", "6789"}, {"x", "789x"},
	} {
		if n, err := tail.Write([]byte(step.written)); n != len(step.written) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if got := string(tail.Bytes()); got != step.want || len(tail.data) > 8 {
			t.Errorf("after %q: %q of %d", step.written, got, len(tail.data))
		}
	}
	large := &Tail{}
	_, _ = large.Write(make([]byte, 1<<20))
	if n := len(large.Bytes()); n != 64<<10 {
		t.Error(n)
	}
}
