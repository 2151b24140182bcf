package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
)

// maxName is the longest tool name that every model API accepts.
const maxName = 64

// Offer gives the tools of several servers unique names: mcp__server__tool.
type Offer struct {
	Tools []event.ToolSpec
	of    map[string]offered
}

type offered struct {
	conn *Conn
	name string // the server's own name for the tool
}

// NewOffer names the current tools of servers. The same servers in the same order get the same names.
func NewOffer(conns ...*Conn) *Offer {
	o := &Offer{of: map[string]offered{}}
	for _, c := range conns {
		for _, t := range c.Tools() {
			name := o.free("mcp__" + plain(c.Name()) + "__" + plain(t.Name))
			o.of[name] = offered{c, t.Name}
			t.Name = name
			o.Tools = append(o.Tools, t)
		}
	}
	return o
}

// free cuts a name to the allowed length, and adds a number if it is taken.
func (o *Offer) free(name string) string {
	try := name[:min(len(name), maxName)]
	for n := 2; ; n++ {
		if _, taken := o.of[try]; !taken {
			return try
		}
		number := fmt.Sprintf("_%d", n)
		try = name[:min(len(name), maxName-len(number))] + number
	}
}

// plain replaces characters that are not allowed in names.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// Call calls a tool by its name in the offer.
func (o *Offer) Call(ctx context.Context, name string, input json.RawMessage, progress func(string)) (Result, error) {
	t, ok := o.of[name]
	if !ok {
		return Result{}, fault.New(fault.NotFoundCode, "there is no tool %s", name)
	}
	return t.conn.Call(ctx, t.name, input, progress)
}

// About returns the server of a tool, and the server's own name for it.
func (o *Offer) About(name string) (server, tool string, ok bool) {
	t, ok := o.of[name]
	if !ok {
		return "", "", false
	}
	return t.conn.Name(), t.name, true
}
