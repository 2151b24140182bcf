package fork_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"omniagent/internal/repo/fork"
	"omniagent/internal/repo/undo"
	"omniagent/internal/sys/process"
	"omniagent/internal/testkit/hermetic"
	"omniagent/internal/walls/sandbox"
)

func TestMain(m *testing.M) {
	hermetic.Signals()
	if process.IsGuard(os.Args) {
		syscall.Exit(process.Guard())
	}
	if sandbox.IsStage(os.Args) {
		syscall.Exit(sandbox.Stage())
	}
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "serves":
			finish(serve(os.Args[2]))
		case "applies":
			snapshots := undo.Store{Dir: os.Args[3], Home: os.Args[4]}
			store := fork.Store{Dir: os.Args[2], Root: snapshots.Root, Programs: starter(), Undone: snapshots.TakenBack}
			f, err := store.Open(os.Args[5])
			if err == nil {
				fmt.Println("begins")
				_, err = f.Apply(context.Background(), snapshots, fork.Request{})
			}
			finish(err)
		case "makes":
			store := fork.Store{Dir: os.Args[2], Root: undo.Store{Home: os.Args[3]}.Root, Programs: starter()}
			_, err := store.Make(context.Background(), fork.Wanted{Dir: ".", Tier: fork.Tier(os.Args[4])})
			finish(err)
		case "inside":
			store := fork.Store{Dir: os.Args[2], Root: undo.Store{Home: os.Args[3]}.Root, Programs: starter()}
			_, err := store.Make(context.Background(), fork.Wanted{Dir: "."})
			finish(err)
		}
	}
	hermetic.InMemory()
	os.Exit(m.Run())
}

func finish(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(3)
	}
	syscall.Exit(0)
}

// serve is a program that listens on port 3000 of its network, and answers each connection with a word.
func serve(word string) error {
	l, err := net.Listen("tcp", "127.0.0.1:3000")
	if err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		_, _ = io.WriteString(conn, word)
		_ = conn.Close()
	}
}
