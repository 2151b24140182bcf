package sandbox

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func views() map[string]view {
	return map[string]view{
		"off": {
			root: "/Users/ann/work", temp: "/var/folders/x/T/omniagent-1",
			write:     []string{"/Users/ann/.cache/go-build"},
			protected: []string{".git/hooks", ".git/config", "/Users/ann/.zshrc"}, hidden: []string{"/Users/ann/.ssh"},
			network: "off",
		},
		"on":    {root: "/private/tmp/w", network: "on"},
		"proxy": {root: "/Users/ann/work", temp: "/tmp/t", hidden: []string{"secret"}, network: "proxy:8123"},
		"hostile": {
			root: "/w/\"\\)(\n;#\t\x01[a-z]*.+é^$", protected: []string{`") (allow default) ("`, "\\"},
			network: "proxy:80)) (allow default",
		},
		"nothing": {network: "of"},
	}
}

func TestProfiles(t *testing.T) {
	for name, v := range views() {
		got := profile(v)
		file := filepath.Join("testdata", "seatbelt", name+".sb")
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
				os.WriteFile(file, []byte(got), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != strings.ReplaceAll(string(want), "\r\n", "\n") {
			t.Errorf("%s: %v, got\n%s", name, err, got)
		}
		if _, err := readProfile(got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// node is an expression of the language: a word, a string or a list.
type node struct {
	word string
	text *string
	list []node
}

// readProfile is a small reader of the language, strict where the real one may be lax.
func readProfile(s string) ([]node, error) {
	list, rest, err := readList(s, 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("more is closed than was opened before %.40q", rest)
	}
	return list, err
}

func readList(s string, depth int) (list []node, rest string, err error) {
	for s = strings.TrimLeft(s, " \n"); s != ""; s = strings.TrimLeft(s, " \n") {
		switch s[0] {
		case ')':
			if depth == 0 {
				return list, s, nil
			}
			return list, s[1:], nil
		case '(':
			inner, after, err := readList(s[1:], depth+1)
			if err != nil {
				return nil, "", err
			}
			list, s = append(list, node{list: inner}), after
		case '"', '#':
			text, after, err := readText(strings.TrimPrefix(s, "#"))
			if err != nil {
				return nil, "", err
			}
			list, s = append(list, node{text: &text}), after
		default:
			end := strings.IndexAny(s, " \n()\"")
			if end <= 0 || strings.Trim(s[:end], "abcdefghijklmnopqrstuvwxyz-*0123456789") != "" {
				return nil, "", fmt.Errorf("no word at %.40q", s)
			}
			list, s = append(list, node{word: s[:end]}), s[end:]
		}
	}
	if depth > 0 {
		return nil, "", errors.New("a list has no end")
	}
	return list, "", nil
}

func readText(s string) (text, rest string, err error) {
	if s == "" || s[0] != '"' {
		return "", "", fmt.Errorf("no string at %.40q", s)
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], nil
		case c < ' ':
			return "", "", fmt.Errorf("a raw control character at %.40q", s[i:])
		case c != '\\':
			b.WriteByte(c)
		case i+1 < len(s) && strings.ContainsRune(`"\`, rune(s[i+1])):
			i++
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == 'n':
			i++
			b.WriteByte('\n')
		case i+3 < len(s) && s[i+1] == 'x':
			n, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
			if err != nil {
				return "", "", err
			}
			i += 3
			b.WriteByte(byte(n))
		default:
			return "", "", fmt.Errorf("an unknown escape at %.40q", s[i:])
		}
	}
	return "", "", errors.New("a string has no end")
}

// allowed decides as the last rule that matches does, for the kinds of rules that profiles of ours have for files.
func allowed(t *testing.T, v view, operation, name string) bool {
	t.Helper()
	rules, err := readProfile(profile(v))
	if err != nil {
		t.Fatal(err)
	}
	verdict := false
	for _, r := range rules {
		if len(r.list) < 2 || r.list[0].word == "version" {
			continue
		}
		named, filtered, matches := false, false, false
		for _, part := range r.list[1:] {
			if part.list == nil {
				stem, star := strings.CutSuffix(part.word, "*")
				named = named || part.word == operation || part.word == "default" || star &&
					strings.HasPrefix(operation, stem)
				continue
			}
			filtered = true
			if f := part.list; f[1].text != nil {
				matches = matches || f[0].word == "literal" && name == *f[1].text || f[0].word == "subpath" &&
					(name == *f[1].text || strings.HasPrefix(name, strings.TrimSuffix(*f[1].text, "/")+"/"))
			}
		}
		if named && (matches || !filtered) {
			verdict = r.list[0].word == "allow"
		}
	}
	return verdict
}

func TestWhatAProfileAllows(t *testing.T) {
	v := views()["off"]
	const kept = "file-write-data file-write-create file-write-unlink file-write-mode"
	for _, c := range []struct {
		operations, names string
		want              bool
	}{
		{kept, "/Users/ann/work/a /Users/ann/work/.git/index /Users/ann/work/.github/x /Users/ann/work/.git/hooks2 " +
			"/private/var/folders/x/T/omniagent-1/f /Users/ann/.cache/go-build/x /dev/null", true},
		{kept, "/Users/ann/work2 /Users/ann/x /Users/ann/work/.git/hooks /Users/ann/work/.git/hooks/pre-commit " +
			"/Users/ann/work/.git/config /Users/ann/.zshrc /Users/ann/.ssh/x /private/tmp/x /etc/x " +
			"/private/var/folders/x/T/y /dev/disk0", false},
		{
			"file-write-unlink file-write-create",
			"/Users/ann/work/.git /Users/ann/work /Users/ann /private/var/folders/x/T/omniagent-1 " +
				"/Users/ann/.cache/go-build", false,
		},
		{"file-write-mode file-write-data", "/Users/ann/work/.git", true},
		{
			"file-read-data file-read-metadata",
			"/Users/ann/work/.git/hooks/x /usr/bin/git /Users/ann/.zshrc /Users/ann/.sshx", true,
		},
		{
			"file-read-data file-read-metadata process-exec file-map-executable", "/Users/ann/.ssh /Users/ann/.ssh/id",
			false,
		},
		{"file-link file-ioctl network-outbound network-bind mach-lookup appleevent-send iokit-open system-socket " +
			"file-mount", "/Users/ann/work/a /dev/tty /private/var/run/docker.sock", false},
		{"process-exec", "/bin/sh /Users/ann/work/a.out", true},
	} {
		for operation := range strings.FieldsSeq(c.operations) {
			for name := range strings.FieldsSeq(c.names) {
				if got := allowed(t, v, operation, name); got != c.want {
					t.Errorf("%s of %s: %v", operation, name, got)
				}
			}
		}
	}
	inTemp := view{root: "/w", temp: "/tmp/t", write: []string{"/"}, hidden: []string{"/etc/secret"}}
	for name, want := range map[string]bool{
		"/private/tmp/t/x": true, "/tmp/t/x": true, "/private/etc/secret": false,
		"/etc/secret/x": false, "/private/etc": false,
	} {
		if got := allowed(t, inTemp, "file-write-unlink", name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for network, want := range map[string][]string{
		"on": {`(remote ip "*:*")`}, "off": nil, "": nil, "ON": nil, "proxy:": nil, "proxy:0": nil, "proxy:99999": nil,
		"proxy:-1": nil, "proxy:80": {`(remote ip "localhost:80")`},
	} {
		text := profile(view{root: "/w", network: network})
		if strings.Contains(text, "network-outbound") != (want != nil) ||
			slices.ContainsFunc(want, func(s string) bool { return !strings.Contains(text, s) }) {
			t.Errorf("%q: %s", network, text)
		}
	}
}

// TestMistakesCloseMore: an invalid path gives nothing, and never a rule without a path, which would be for all of
// them.
func TestMistakesCloseMore(t *testing.T) {
	for _, v := range []view{
		{},
		{
			root: "relative", temp: "t", write: []string{"", "w"}, protected: []string{"", "p"},
			hidden: []string{"", "h"},
		},
		{root: "/a\x00b", temp: "\x00", protected: []string{"p"}, hidden: []string{"/h\x00", "h"}},
	} {
		if text := profile(v); strings.Contains(text, `\x00`) {
			t.Errorf("%+v: %s", v, text)
		}
		for _, name := range []string{"/x", "/relative/x", "/a", "/t", "/w"} {
			if allowed(t, v, "file-write-data", name) || !allowed(t, v, "file-read-data", name) {
				t.Errorf("%+v: %s", v, name)
			}
		}
	}
	if allowed(t, view{root: "/w/../etc/./x/"}, "file-write-data", "/w/x") ||
		!allowed(t, view{root: "/w/../e/./x/"}, "file-write-data", "/e/x/y") {
		t.Error("the path was not made plain")
	}
}

// FuzzProfile: whatever the paths are, the profile is one that can be read, has the same rules, and keeps what it
// protects.
func FuzzProfile(f *testing.F) {
	for _, seed := range []string{
		`a"b`, `\`, "\n", "(", `")(allow default)("`, "é\x7f\xff", "..", "/", " ", "#\"", ";",
		"a/b/c", "\\x41",
	} {
		f.Add("/work/"+seed, seed, "proxy:"+seed)
	}
	f.Fuzz(func(t *testing.T, root, name, network string) {
		v := view{
			root: root, protected: []string{name}, hidden: []string{name + "h"}, temp: "/private/tmp/t",
			network: network,
		}
		rules, err := readProfile(profile(v))
		if err != nil {
			t.Fatalf("%+v: %v", v, err)
		}
		for _, r := range rules {
			if len(r.list) == 0 || !slices.Contains([]string{"version", "allow", "deny"}, r.list[0].word) {
				t.Fatalf("a rule of no kind: %+v", r)
			}
			if r.list[0].word == "allow" && r.list[1].word == "default" {
				t.Fatal("all is allowed")
			}
		}
		if at := v.absolute(name); at != "" &&
			(allowed(t, v, "file-write-data", at) || allowed(t, v, "file-write-unlink", at)) {
			t.Errorf("%q is not protected", at)
		}
		if at := v.absolute(name + "h"); at != "" && allowed(t, v, "file-read-data", at) {
			t.Errorf("%q is not hidden", at)
		}
		if at := v.absolute("some where"); at != "" && at != v.absolute(name) && v.absolute(name) != v.absolute(".") &&
			!beneath(at, v.absolute(name)) && !beneath(at, v.absolute(name+"h")) &&
			!allowed(t, v, "file-write-data", at) {
			t.Errorf("%q is not writable", at)
		}
	})
}

// TestProfileOfAPolicy: what a policy keeps, hides and opens is in its profile.
func TestProfileOfAPolicy(t *testing.T) {
	got := Profile(Policy{
		Root: "/w", Write: []string{"/x"}, Protected: []string{".mcp.json"},
		Hidden: []string{"/home/a/.ssh"}, Temp: "/t",
	})
	for _, want := range []string{`"/w"`, `"/x"`, `"/w/.mcp.json"`, `"/w/.git/hooks"`, `"/home/a/.ssh"`, `"/t"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "(allow network*)") ||
		!strings.Contains(Profile(Policy{Root: "/w", Temp: "/t", Network: Network{Open: true}}), "(allow network") {
		t.Errorf("the network: %s", got)
	}
}
