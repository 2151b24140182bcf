package contract

import (
	"context"
	"os"
	"slices"
)

// WithStore makes the Run of a command that works on what open returns, such as a store.
func WithStore[S any](open func(*Call) (S, error),
	do func(context.Context, *Call, S) (Result, error),
) func(context.Context, *Call) (Result, error) {
	return func(ctx context.Context, c *Call) (Result, error) {
		store, err := open(c)
		if err != nil {
			return Result{}, err
		}
		return do(ctx, c, store)
	}
}

// StoreCommand completes the declaration of a command that reads or changes a store. unusable says when the store
// cannot be used. missing says when the id that the command takes is not found.
func StoreCommand(c Command, unusable, missing string) *Command {
	c.Class, c.Version, c.Scopes, c.LooseConfig = Envelope, "1.0.0", []string{}, true
	c.Exits = append(c.Exits, Exit{Code: PermissionDenied, When: "no access"})
	if !slices.ContainsFunc(c.Exits, func(e Exit) bool { return e.Code == PreconditionFailed }) {
		c.Exits = append(c.Exits, Exit{Code: PreconditionFailed, When: unusable})
	}
	if slices.ContainsFunc(c.Params, func(p Param) bool { return p.Name == "id" }) {
		c.Exits = append(c.Exits, Exit{Code: NotFound, When: missing})
	}
	return &c
}

// UntilSignal returns a context that ends with the first signal. ended returns the exit status for that signal, and
// whether there was one.
func UntilSignal(ctx context.Context, signals <-chan os.Signal) (_ context.Context, ended func() (int, bool),
	stop context.CancelFunc,
) {
	ctx, stop = context.WithCancel(ctx)
	status := make(chan int, 1)
	go func() {
		select {
		case s := <-signals:
			status <- ExitOf(s)
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, func() (int, bool) {
		select {
		case code := <-status:
			return code, true
		default:
			return 0, false
		}
	}, stop
}
