// Package ident makes unique names.
//
// They are made of the system's random numbers, so that they cannot be guessed or repeat. A system without random
// numbers ends the process.
package ident

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// Hex returns n random bytes in hexadecimal digits. Four are enough to tell a few neighbours apart; a name that guards
// something has at least 12.
func Hex(n int) string { return hex.EncodeToString(random(n)) }

// UUID returns a random UUID, version 4.
func UUID() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

const (
	orderedSize = 16 // bytes
	orderedTime = 6  // of them, for the milliseconds since 1970
)

// Ordered returns a name that sorts by the time at which it was made and needs no quoting.
func Ordered() string {
	b := random(orderedSize)
	for i, ms := orderedTime-1, time.Now().UnixMilli(); i >= 0; i, ms = i-1, ms>>8 {
		b[i] = byte(ms)
	}
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// TimeOf returns when Ordered made a name.
func TimeOf(name string) (at time.Time, ok bool) {
	b, err := base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(name))
	if err != nil || len(b) != orderedSize {
		return at, false
	}
	ms := int64(0)
	for _, digit := range b[:orderedTime] {
		ms = ms<<8 | int64(digit)
	}
	return time.UnixMilli(ms), true
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return b
}
