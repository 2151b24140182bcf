package habits

import (
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
)

var (
	aMap     = map[string]int{}
	aSlice   []string
	aPointer = regexp.MustCompile("")
	aMutex   sync.Mutex
	anAtomic atomic.Int64
	aChannel chan int
	slices   [2][]int
)

type register map[string]int

var named register

var (
	errFine       = errors.New("an error is a value")
	lazy          = sync.OnceValue(func() int { return 0 })
	array         = [...]string{"a"}
	number        = 1
	_       error = (*failure)(nil)
)

type failure struct{}

func (*failure) Error() string { return "" }
