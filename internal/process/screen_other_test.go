//go:build !linux || !terminals

package process

import "errors"

func screen([]string) error { return errors.ErrUnsupported }
