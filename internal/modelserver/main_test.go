package modelserver

import (
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
	s := &Script{}
	if name != "" {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if s, err = ParseScript(data); err != nil {
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
		o.Log = func(r *Request) {
			line, _ := json.Marshal(struct {
				*Request
				Body json.RawMessage `json:"body"`
			}{r, r.Raw})
			_, _ = f.Write(append(line, '\n'))
		}
	}
	server, err := Start(s, o)
	if err != nil {
		return err
	}
	fmt.Println(server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	return server.Close()
}
