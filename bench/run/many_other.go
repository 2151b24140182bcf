//go:build !linux

package main

import "errors"

func (p place) many(int) error { return errors.New("the memory of processes is told on Linux only") }
