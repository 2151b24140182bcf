package walls

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
)

// world is what could be reached: everything listens on this machine, in our own network namespace, and nobody shall be
// heard.
type world struct {
	tcp              net.Listener
	udp              net.PacketConn
	socket, abstract string

	mu    sync.Mutex
	heard []string
}

func (w *world) port() string    { return strconv.Itoa(w.tcp.Addr().(*net.TCPAddr).Port) }
func (w *world) udpPort() string { return strconv.Itoa(w.udp.LocalAddr().(*net.UDPAddr).Port) }

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heard = append(w.heard, fmt.Sprintf(format, args...))
}

// was is what was heard since it was last asked.
func (w *world) was() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	heard := w.heard
	w.heard = nil
	return heard
}

// listen puts a world around the ground.
func (g *ground) listen(t testing.TB) {
	t.Helper()
	w := &world{socket: g.base + "/socket", abstract: "omniagent-test-" + filepath.Base(g.base)}
	var err error
	w.tcp, err = net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w.udp, err = net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	// The path of a socket has little room.
	named, err := net.Listen("unix", w.socket)
	must(t, err)
	abstract, err := net.Listen("unix", "@"+w.abstract)
	must(t, err)
	var served sync.WaitGroup
	for _, l := range []net.Listener{w.tcp, named, abstract} {
		served.Go(func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				w.note("%s on %s", l.Addr().Network(), l.Addr())
				_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\n\r\n" + worldText))
				_ = c.Close()
			}
		})
	}
	served.Go(func() {
		data := make([]byte, 1<<10)
		for {
			n, _, err := w.udp.ReadFrom(data)
			if err != nil {
				return
			}
			w.note("a datagram of %d bytes", n)
		}
	})
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{w.tcp, w.udp, named, abstract} {
			_ = c.Close()
		}
		served.Wait()
	})
	g.world = w
}

const worldText = "from the world\n"
