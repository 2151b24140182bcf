package process

import "io"

// Unheard would tell that nobody reads any more. Windows tells it only to who writes.
func Unheard(io.Writer) <-chan struct{} { return make(chan struct{}) }
