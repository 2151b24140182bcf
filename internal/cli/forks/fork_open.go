package forks

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
)

func forkOpen() *contract.Command {
	return &contract.Command{
		Path: "fork open", Summary: "reach a port of a fork from outside, until interrupted", Class: contract.Printout,
		Danger: contract.Safe, Version: "1.0.0", Scopes: []string{}, LooseConfig: true,
		Params: []contract.Param{
			forkParam(),
			{
				Name: "port", Kind: contract.Text, Position: 2, Required: true, Pattern: `^:?[0-9]{1,5}$`,
				Example: "8080",
				Help:    "such as :3000",
			},
			{Name: "cwd", Kind: contract.File, Help: "current directory of the call"},
		},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it was interrupted"},
			{Code: contract.PreconditionFailed, When: "no home"},
			noFork(),
			{Code: contract.Conflict, When: "nothing runs in it, or it has the network of this machine"},
			{Code: contract.PermissionDenied, When: "no access"},
		},
		Examples: []contract.Example{{Description: "A server", Command: "omniagent fork open try :3000"}},
		Serve:    serveForkOpen,
	}
}

func serveForkOpen(_ context.Context, c *contract.Call, signals <-chan os.Signal) (int, error) {
	f, err := forkNamed(c)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(strings.TrimPrefix(c.String("port"), ":"), 10, 16)
	if err != nil || port == 0 {
		return 0, fault.New(fault.ArgError, "%s is not a port; ports are 1 to 65535", c.String("port")).
			Hint("omniagent fork open %s :3000", f.Name)
	}
	dialer, err := f.Dial(fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, err
	}
	defer dialer.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fault.New(fault.PermissionDenied, "no port can be listened at").Because(err)
	}
	fmt.Fprintf(c.Host.Stdout, "http://%s\n", l.Addr())
	go func() {
		<-signals
		_ = l.Close()
	}()
	var mu sync.Mutex // guards dialer
	for {
		conn, err := l.Accept()
		if err != nil {
			return 0, nil
		}
		go func() {
			mu.Lock()
			inside, err := dialer.Connect()
			mu.Unlock()
			if err != nil {
				parts.LogLine(c, "the fork does not answer at :%d: %v", port, err)
				_ = conn.Close()
				return
			}
			relay(conn, inside)
		}()
	}
}

// relay copies between two connections, both ways, until both have ended.
func relay(a, b net.Conn) {
	var group sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		group.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			if half, ok := way[0].(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		})
	}
	group.Wait()
	_, _ = a.Close(), b.Close()
}
