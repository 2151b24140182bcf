package modelserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"
)

// TestMain serves by hand when it is asked to: OMNIAGENT_MODELSERVER_SCRIPT names a file with a script (empty: no
// script), _LOG a file that gets a line for each request, and _KEY the key. The address is the first line of standard
// output; it ends with standard input.
func TestMain(m *testing.M) {
	name, asked := os.LookupEnv("OMNIAGENT_MODELSERVER_SCRIPT")
	if !asked {
		os.Exit(m.Run())
	}
	if err := serveByHand(name); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serveByHand(name string) error {
	var b Backend = &Script{}
	if name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if b, err = ParseScript(data); err != nil {
			return err
		}
	}
	o := Options{Key: os.Getenv("OMNIAGENT_MODELSERVER_KEY")}
	if log := os.Getenv("OMNIAGENT_MODELSERVER_LOG"); log != "" {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		b = logged{b, f}
	}
	server, err := Start(b, o)
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}

// logged writes a line for each request.
type logged struct {
	Backend
	to io.Writer
}

func (l logged) Answer(ctx context.Context, r *Request, w Writer) error {
	line, err := json.Marshal(struct {
		*Request
		Body json.RawMessage `json:"body"`
	}{r, r.Raw})
	if err == nil {
		_, err = l.to.Write(append(line, '\n'))
	}
	if err != nil {
		return err
	}
	return l.Backend.Answer(ctx, r, w)
}
