//go:build !linux

package process

import "errors"

func screen([]string) error { return errors.ErrUnsupported }
