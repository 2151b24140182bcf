package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The scripts that npm and pnpm write, complete, for a script that node runs and for an executable.
const (
	npmCmd = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT /b\r\n:start\r\nSETLOCAL\r\nCALL " +
		":find_dp0\r\n\r\n" +
		"IF EXIST \"%dp0%\\node.exe\" (\r\n  SET \"_prog=%dp0%\\node.exe\"\r\n) ELSE (\r\n  SET \"_prog=node\"\r\n" +
		"  SET PATHEXT=%PATHEXT:;.JS;=;%\r\n)\r\n\r\nendLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & " +
		"\"%_prog%\"  " +
		"\"%dp0%\\node_modules\\@openai\\codex\\bin\\codex.js\" %*\r\n"
	npmCmdExecutable = "@ECHO off\r\nGOTO start\r\n:find_dp0\r\nSET dp0=%~dp0\r\nEXIT " +
		"/b\r\n:start\r\nSETLOCAL\r\nCALL :find_dp0\r\n" +
		"\"%dp0%\\node_modules\\@openai\\codex\\bin\\codex.js\"   %*\r\n"
	pnpmCmd = "@SETLOCAL\r\n@IF EXIST \"%~dp0\\node.exe\" (\r\n  \"%~dp0\\node.exe\"  " +
		"\"%~dp0\\node_modules\\@openai\\codex\\bin\\codex.js\" %*\r\n" +
		") ELSE (\r\n  @SET PATHEXT=%PATHEXT:;.JS;=;%\r\n  node  " +
		"\"%~dp0\\node_modules\\@openai\\codex\\bin\\codex.js\" %*\r\n)\r\n"
	localCmd = "@SETLOCAL\r\n\"%~dp0\\..\\pnpm\\node_modules\\@openai\\codex\\bin\\codex.js\" %*\r\n"
	posix    = "#!/bin/sh\nbasedir=$(dirname \"$(echo \"$0\" | sed -e 's,\\\\,/,g')\")\n\ncase `uname` in\n    " +
		"*CYGWIN*|*MINGW*|*MSYS*)\n" +
		"        if command -v cygpath > /dev/null 2>&1; then\n            basedir=`cygpath -w \"$basedir\"`\n       " +
		" fi\n    ;;\nesac\n\n" +
		"if [ -x \"$basedir/node\" ]; then\n  exec \"$basedir/node\"  " +
		"\"$basedir/node_modules/@openai/codex/bin/codex.js\" \"$@\"\n" +
		"else\n  exec node  \"$basedir/node_modules/@openai/codex/bin/codex.js\" \"$@\"\nfi\n"
	target = "node_modules/@openai/codex/bin/codex.js"
)

func TestShimTarget(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"npm on Windows", npmCmd, target},
		{"npm on Windows, executable", npmCmdExecutable, target},
		{"pnpm on Windows", pnpmCmd, target},
		{"above itself", localCmd, "../pnpm/" + target},
		{"POSIX shell", posix, target},
		{"node alone", `exec "$basedir/node"`, ""},
		{"a target that is not there", `exec "$basedir/other.js"`, ""},
		{"a variable in the target", `exec "$basedir/$x/codex.js"`, ""},
		{"an open quote", `exec "$basedir/`, ""},
		{"another script", "#!/bin/sh\nexec /opt/codex/bin/codex \"$@\"\n", ""},
		{"an executable", "\x7fELF\x00" + posix, ""},
		{"too long", posix + strings.Repeat("#", maxShim), ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			bin := filepath.Join(root, "bin")
			for _, file := range []string{
				filepath.Join(bin, target), filepath.Join(root, "pnpm", target),
				filepath.Join(bin, "node"),
			} {
				write(t, file, "")
			}
			write(t, filepath.Join(bin, "codex.cmd"), tt.script)
			want := ""
			if tt.want != "" {
				want = filepath.Join(bin, filepath.FromSlash(tt.want))
			}
			if got := shimTarget(filepath.Join(bin, "codex.cmd")); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestVersionThroughShim(t *testing.T) {
	for name, script := range map[string]string{"cmd": npmCmd, "posix": posix} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "codex.cmd"), script)
			write(t, filepath.Join(root, target), "")
			write(t, filepath.Join(root, "node_modules/@openai/codex/package.json"),
				`{"name":"@openai/codex","version":"0.169.0"}`)
			p := Program{}
			p.About.Package = "@openai/codex"
			if got := p.version(filepath.Join(root, "codex.cmd")); got != "0.169.0" {
				t.Errorf("version %q", got)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("0.169.0-linux-x64")
	f.Add("1.2.3-\x1b[31m")
	f.Fuzz(func(t *testing.T, s string) {
		for _, c := range []byte(plain(s)) {
			if c <= ' ' || c > '~' || strings.ContainsRune(`/\"'<>&;$`, rune(c)) {
				t.Errorf("%q lets %q through", s, c)
			}
		}
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
