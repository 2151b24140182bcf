package diff

// effort limits the steps that a comparison may take, so that texts made to be slow are compared coarsely instead.
const effort = 1 << 24

// Lines marks the lines of two texts that are in only one of them, such that the others are the same in both.
// There are as few marks as possible, unless finding so few would take too long. It is the algorithm of E. Myers in
// linear space.
func Lines(before, after [][]byte) (removed, added []bool) {
	ids := make(map[string]int, len(before))
	number := func(lines [][]byte) []int {
		list := make([]int, len(lines))
		for i, line := range lines {
			id, ok := ids[string(line)]
			if !ok {
				id = len(ids)
				ids[string(line)] = id
			}
			list[i] = id
		}
		return list
	}
	m := &myers{a: number(before), b: number(after)}
	m.removed, m.added = make([]bool, len(before)), make([]bool, len(after))
	size := len(before) + len(after) + 3
	m.forward, m.backward, m.zero = make([]int, size), make([]int, size), len(after)+1
	m.most = min(max(effort/size, 16), 4096)
	m.compare(0, len(before), 0, len(after))
	return m.removed, m.added
}

// myers is a running comparison. Diagonal d has the points (x, y) where x - y = d. forward and backward have the x that
// was reached on each diagonal from the beginning and from the end, at the index d + zero.
type myers struct {
	a, b              []int
	removed, added    []bool
	forward, backward []int
	zero              int
	most              int // rounds of one search
}

// compare marks the differences between a[x:xEnd] and b[y:yEnd].
func (m *myers) compare(x, xEnd, y, yEnd int) {
	for {
		for x < xEnd && y < yEnd && m.a[x] == m.b[y] {
			x, y = x+1, y+1
		}
		for x < xEnd && y < yEnd && m.a[xEnd-1] == m.b[yEnd-1] {
			xEnd, yEnd = xEnd-1, yEnd-1
		}
		if x == xEnd || y == yEnd {
			break
		}
		xMiddle, yMiddle := m.split(x, xEnd, y, yEnd)
		if xMiddle-x+yMiddle-y < xEnd-xMiddle+yEnd-yMiddle { // the smaller part by recursion, so that it is not deep
			m.compare(x, xMiddle, y, yMiddle)
			x, y = xMiddle, yMiddle
		} else {
			m.compare(xMiddle, xEnd, yMiddle, yEnd)
			xEnd, yEnd = xMiddle, yMiddle
		}
	}
	for ; x < xEnd; x++ {
		m.removed[x] = true
	}
	for ; y < yEnd; y++ {
		m.added[y] = true
	}
}

// split returns a point on a shortest path. It searches from both ends until the searches meet; if that takes too long,
// it returns the farthest point that either has reached.
func (m *myers) split(x0, x1, y0, y1 int) (x, y int) {
	first, last := x0-y1, x1-y0 // all diagonals
	f, b := span{x0 - y0, x0 - y0}, span{x1 - y1, x1 - y1}
	odd := (f.low-b.low)&1 != 0
	m.forward[f.low+m.zero], m.backward[b.low+m.zero] = x0, x1
	for round := 1; ; round++ {
		f.widen(m.forward, m.zero, first, last, -1)
		for d := f.high; d >= f.low; d -= 2 {
			x := max(m.forward[d-1+m.zero]+1, m.forward[d+1+m.zero])
			for y = x - d; x < x1 && y < y1 && m.a[x] == m.b[y]; x, y = x+1, y+1 {
			}
			m.forward[d+m.zero] = x
			if odd && b.low <= d && d <= b.high && m.backward[d+m.zero] <= x {
				return x, y
			}
		}
		b.widen(m.backward, m.zero, first, last, int(^uint(0)>>1))
		for d := b.high; d >= b.low; d -= 2 {
			x := min(m.backward[d-1+m.zero], m.backward[d+1+m.zero]-1)
			for y = x - d; x > x0 && y > y0 && m.a[x-1] == m.b[y-1]; x, y = x-1, y-1 {
			}
			m.backward[d+m.zero] = x
			if !odd && f.low <= d && d <= f.high && x <= m.forward[d+m.zero] {
				return x, y
			}
		}
		if round >= m.most {
			return m.farthest(f, b, x0, x1, y0, y1)
		}
	}
}

// span is the diagonals that a search has reached.
type span struct{ low, high int }

// widen adds a diagonal at each end, or removes one where the texts end. never marks the neighbours, which no path has
// reached.
func (s *span) widen(reached []int, zero, first, last, never int) {
	if s.low > first {
		s.low--
		reached[s.low-1+zero] = never
	} else {
		s.low++
	}
	if s.high < last {
		s.high++
		reached[s.high+1+zero] = never
	} else {
		s.high--
	}
}

// farthest returns the point of either search that is farthest from where it began.
func (m *myers) farthest(f, b span, x0, x1, y0, y1 int) (x, y int) {
	best := -1
	for d := f.high; d >= f.low; d -= 2 {
		at := min(m.forward[d+m.zero], x1, y1+d)
		if way := at - x0 + at - d - y0; way > best {
			best, x, y = way, at, at-d
		}
	}
	for d := b.high; d >= b.low; d -= 2 {
		at := max(m.backward[d+m.zero], x0, y0+d)
		if way := x1 - at + y1 - at + d; way > best {
			best, x, y = way, at, at-d
		}
	}
	return x, y
}
