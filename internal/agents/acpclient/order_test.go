package acpclient_test

import (
	"errors"

	"omniagent/internal/agents/acpclient"
	"omniagent/internal/core/event"
	"omniagent/internal/testkit/order"
)

func init() {
	acpclient.InOrder = func(events []event.Event) error {
		flat, nested, err := order.Told(events, event.Facts{Agent: "x"})
		return errors.Join(err, order.Flat(flat), order.Nested(nested))
	}
}
