package process

import "io"

// ReaderGone never closes its channel: on Windows only a write notices that the reader is gone.
func ReaderGone(io.Writer) <-chan struct{} { return make(chan struct{}) }

// IsReaderGone is always false there.
func IsReaderGone(io.Writer) bool { return false }
