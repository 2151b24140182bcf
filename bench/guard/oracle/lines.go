package oracle

import (
	"math/rand/v2"
	"strings"
)

// Lines makes lines out of pieces of bash's grammar: mostly what the guard approves, with something in it that it must
// not.
type Lines struct{ r *rand.Rand }

// NewLines makes the same lines for the same seed.
func NewLines(seed uint64) *Lines { return &Lines{rand.New(rand.NewPCG(seed, 7))} }

func (l *Lines) one(of ...string) string   { return of[l.r.IntN(len(of))] }
func (l *Lines) in(n int) bool             { return l.r.IntN(n) == 0 }
func (l *Lines) pick(fields string) string { return l.one(strings.Fields(fields)...) }

// Next makes a line.
func (l *Lines) Next() string {
	line := l.list(0)
	if l.in(12) {
		line = l.mutate(line)
	}
	return line
}

// mutate puts odd characters in, takes some out, or repeats a part.
func (l *Lines) mutate(s string) string {
	for range 1 + l.r.IntN(3) {
		at := l.r.IntN(len(s) + 1)
		switch l.r.IntN(4) {
		case 0:
			s = s[:at] + l.one("\\\n", "\\", "'", `"`, "`", "$", "#", " #", "\r", "\t", "\n", "!", "^", "\u00a0",
				"\u2028", "{", "}", "(", ")", ";", "&", "|", "<", ">", "=", "~", "*", "[", "]", "$'", `$"`, "$(", "${",
				"@", "%",
				"evil", "\\\\", "-", "--", ",", "..", "1", "<<", "<<<", "é", "&&", "||", ";;", "in", "do", "done",
				"coproc ", "time ", "! ", "{a,b}", "{1..3}") + s[at:]
		case 1:
			if at < len(s) {
				s = s[:at] + s[at+1:]
			}
		case 2:
			to := min(len(s), at+l.r.IntN(10))
			s = s[:to] + s[at:to] + s[to:]
		case 3:
			s = s[:at] + l.piece() + s[at:]
		}
	}
	return s
}

func (l *Lines) list(depth int) string {
	s := l.statement(depth)
	for l.in(3) {
		s += l.one(" && ", " || ", "; ", " | ", " |& ", "\n", " & ", ";", "|", "&&") + l.statement(depth)
	}
	return s
}

func (l *Lines) statement(depth int) string {
	if depth < 3 && l.in(6) {
		inner := func() string { return l.list(depth + 1) }
		switch l.r.IntN(16) {
		case 0:
			return "(" + inner() + ")"
		case 1:
			return "{ " + inner() + "; }"
		case 2:
			return "if " + inner() + "; then " + inner() + "; else " + inner() + "; fi"
		case 3:
			return "! " + inner()
		case 4:
			return "time " + inner()
		case 5:
			return "for i in " + l.word() + " " + l.word() + "; do " + inner() + "; done"
		case 6:
			return "case " + l.word() + " in " + l.word() + ") " + inner() + ";; esac"
		case 7:
			return "ls() { " + inner() + "; }; ls"
		case 8:
			return "[[ " + l.word() + " " + l.one("==", "=", "!=", "<", "-eq", "=~", "-nt", "&&") + " " + l.word() +
				" ]]"
		case 9:
			return "[[ " + l.one("-f", "-v", "-z", "-n", "-e", "-R", "!", "-o") + " " + l.word() + " ]]"
		case 10:
			return "((" + l.arithmetic() + "))"
		case 11:
			return l.one("x", "PATH", "LD_PRELOAD", "BASH_ENV", "a[0]", "ls", "v", "IFS") + "=" + l.word() +
				l.one("", " "+l.statement(depth+1), "; "+l.statement(depth+1))
		case 12:
			return l.one("while false; do ", "until true; do ") + inner() + "; done"
		case 13:
			return "coproc " + inner()
		case 14:
			return l.one("declare", "export", "local", "readonly", "typeset", "alias", "unset", "let", "trap", "enable",
				"hash", "shopt -s", "read", "mapfile", "exec", "eval", "source", ".", "builtin", "set") + " " +
				l.word() + l.one("", " EXIT", "="+l.word())
		case 15:
			return l.one("printf -v", "printf", "test -v", "[ -v", "unset -v", "read -a", "wait -p") + " " +
				l.one("'a[$(evil)]'", `"a[\$(evil)]"`, "x", "'%n'") + " " + l.word() + l.one("", " ]")
		}
	}
	return l.command() + l.redirects()
}

func (l *Lines) redirects() string {
	if !l.in(6) {
		return ""
	}
	return " " + l.one("> /dev/null", "2>&1", "2>/dev/null", "&> /dev/null", "< a.txt", "<&-", "2>&-", "> pwned",
		">> a.txt", ">| a.txt", "<> a.txt", "<> new", "&>> pwned", ">& pwned", "{x}> pwned", "2> pwned",
		"> >(evil)", "< <(evil)", "<<< "+l.word(), "<<E\n"+l.one("text", "$(evil)", "`evil`", "${x@P}", `\$(evil)`,
			"$((x))", "$x")+"\nE", "<<'E'\n$(evil)\nE", "<<-E\n\t$(evil)\n\tE", `<<"E"`+"\n`evil`\nE",
		"<<E\\\nE\nevil\nE\nE", "> /dev/stderr", "> ~/plain", "< ~/plain", "< ../outside", "< \"$x\"", "3>&1",
		"1>&2 2>&1", "> $x", "> a*", ">&$x", "<<E #\nE", "<<E ; evil\nE", "<<E | cat\nx\nE")
}

// word is an argument.
func (l *Lines) word() string {
	if l.in(8) {
		return l.piece()
	}
	if l.in(8) {
		return l.piece() + l.piece()
	}
	return l.one("a.txt", "b.go", "c.json", "sub", "sub/d.txt", ".", "foo", "'e f'", `"e f"`, `e\ f`, "-n", "1", "2",
		"'-rf'", "--", "sub/*", "./*", "a*", "'*'", "''", `""`, "-", "HEAD", "+%Y", "./-rf", "'$(evil)'", `'a"b'`)
}

// piece is something that bash expands, or seems to.
func (l *Lines) piece() string {
	return l.one("$(evil)", "`evil`", `"$(evil)"`, "\"`evil`\"", `'$(evil)'`, `"\$(evil)"`, `\$\(evil\)`, "$x", `"$x"`,
		"${x}", "${x@P}", "${v@P}", "${!x}", "${y:=evil}", "${y:-$(evil)}", "${x:+`evil`}", "${x//a/$(evil)}",
		"${a[$(evil)]}", "${a[x]}", "${#a[x]}", "${x:x}", "${x:0:x}", "$((x))", "$((1+2))", "$[x]", "$[1]",
		"$((a[$(evil)]))", "$(( $(evil) ))", "$((x=1))", "$'\\x24(evil)'", `$"$(evil)"`, "<(evil)", ">(evil)", "*",
		"?*", "[a-z]*", "{a,b}",
		"{a.txt,$(evil)}", "{1..3}", "~", "~/plain", "~root", "~+", "../outside", "../home/plain", "$(echo evil)",
		"$(ls)", `"$(ls)"`, "$(<a.txt)", "$(< a.txt)", "@(a|b)", "!(a)", "*(a)", "$?", "$$", "$#", "$!", "$PWD", "$-",
		"$_", "$0", "$@", "$*", "\\", "\\\n",
		"a\\\nb", "#x", "x#", "'a'\\''b'", `"a'b"`, "$", "$,", `"$"`, "!", "!!", "^a^b", "a=~", "x=~/plain",
		"--x=~/plain", "a:~", "'\n'", "\"\n\"", "\r", "\u00a0", "é", "-*", ";evil", "&evil", "|evil", "\nevil\n",
		"`echo \\`evil\\``", "$(echo $(evil))",
		"${x:-'}'}", "${x:-\"}\"}", "${x%%'}'*}", "\"${x:-'$(evil)'}\"", "$(case a in a) evil;; esac)", "$(# )\nevil)",
		"$(cat <<E\n$(evil)\nE\n)", "-", "--", "''-o''", "-\\o", `"-"o`, "$''", "\\-exec", "evil", "/bin/ls",
		"./sub/ls", "sub/ls")
}

func (l *Lines) arithmetic() string {
	return l.one("1+2", "x", "a[0]", "a[$(evil)]", "x=1", "i++", "1?2:3", "$x", "`evil`", "08", "16#ff", "x[x]", "'1'",
		`"1"`, "-1", "1,x")
}

// command is a simple command: mostly an approved program with approved arguments and, now and then, something else.
//
// Long because it is one table.
func (l *Lines) command() string {
	if l.in(14) {
		return l.one(Spies()...) + " " + l.word()
	}
	if l.in(14) {
		return l.one("./sub/ls", "sub/ls", "/bin/ls", "/usr/bin/cat", "\\ls", "'ls'", `l"s"`, "l\\s", "$x",
			"$(echo ls)", "command ls", "builtin echo", "exec ls", "nice ls", "timeout 5 ls", "env ls", "command -v ls",
			"command -p ls", "timeout 5 evil",
			"timeout 5 timeout 5 cat", "nice -n 5 ls", "command cd", "eval ls", "coproc ls", "xargs ls", "cd sub;ls",
			"type -a ls", "hash ls", "enable ls", "cd", "pushd sub", "time -p ls", "\"ls\"", "ls\\\n", "''ls",
			"{ls,-l}", "command command echo", "nice nice cat") + " " + l.word()
	}
	file := func() string {
		if l.in(7) {
			return l.word()
		}
		return l.one("a.txt", "b.go", "sub/d.txt", "'e f'", "./-rf", "sub/*", "./*.txt", "c.json", "two/*")
	}
	nasty := func(of ...string) string {
		if l.in(5) {
			return " " + l.one(of...)
		}
		return ""
	}
	switch l.r.IntN(26) {
	case 0:
		return "ls" + l.one("", " -la", " -1", " -R", " --color=auto", " --color", " -lh") + " " + l.one("", file(),
			"sub", ".") + nasty("--colo", "-Z", "-D", "--hyperlink", "*", "--")
	case 1:
		return l.pick("cat tac rev nl wc head tail sum cksum sha256sum md5sum strings fold expand fmt") +
			l.one("", " -n 2", " -c 3", " -v", " -2") + " " + file() + nasty("--files0-from=a.txt", "-f", "-c",
			"--check", "> pwned", "-o pwned")
	case 2:
		return "grep" + l.one("", " -rn", " -i", " -c", " -E", " -A 2", " -2", " -P", " --include=*.go",
			" --include='*.go'") + " " + l.one("foo", "'foo'", `"fo$"`, "'$(evil)'", l.word()) + " " + file() +
			nasty("-f evil", "-R", "--exclude-from=x", "-d read", "-f ../outside")
	case 3:
		return "rg" + l.one("", " -n", " -i", " --files", " -l", " -g '*.go'") + nasty("--pre evil", "--pre=evil",
			"--hostname-bin=evil", "-z", "--search-zip", "--pre-glob '*' --pre evil", "--hyperlink-format=default",
			"--ignore-file=x", "-L", "--follow") + " foo " + file()
	case 4:
		return "find " + l.one(".", "sub", "", "./sub", file()) + l.one("", " -name '*.go'", " -type f", " -maxdepth 1",
			" -print", " \\( -name a -o -name b \\)", " ! -name x", " -size +1k", " -printf '%p\\n'") +
			nasty("-exec evil {} \\;", "-exec evil {} +", "-execdir evil \\;", "-ok evil \\;", "-delete",
				"-fprintf pwned x", "-fls pwned", "-fprint pwned", "-fprint0 pwned", "-name *", "-name -exec evil \\;",
				"-files0-from a.txt", "*", "-printf '%p' -delete", "-newer ../outside")
	case 5:
		return "sed " + l.one("-n 1,2p", "-n '1p'", "-n '/foo/p'", "-ne 2p", "-n -e 1p -e '$p'", "-n '1p;3q'",
			"-n '/foo/,$p'") + " " + file() +
			nasty("-i", "-e 'w pwned'", "-e '1e evil'", "-f b.go", "-n 's/a/b/w pwned'", "--in-place", "-e 's/x/y/e'",
				"-s -i.bak", "-- 'w pwned'") + nasty("-n 'w pwned' a.txt", "e", "w")
	case 6:
		return "sed " + l.one("-n 'w pwned'", "-n '1w pwned'", "-n '1e evil'", "-n e", "-n 's/foo/evil/ep'",
			"-n '/foo/w pwned'", "-n '1p;w pwned'", "-n $'1p\\nw pwned'", "-n '1{p;w pwned\n}'",
			"-n '/a/;/b/w pwned;p'", "-n '/[/]w pwned;/p'", "-n -- 'w pwned' -e p", "-n '1p' -e 'w pwned'",
			"-nf b.go", "-n '/x\\/w pwned;/p'", "-n '1,/a/w pwned'", "-n -s --expression='w pwned'", "1p") + " " +
			file()
	case 7:
		return "sort" + l.one("", " -n", " -u", " -k2", " -t: -k1,1", " -rn") + " " + file() + nasty("-o pwned",
			"-opwned", "--output=pwned", "--compress-program=evil -S 1b", "-T sub", "--files0-from=x", "--outp=pwned",
			"-no pwned", "--random-source=x -R")
	case 8:
		return "uniq" + l.one("", " -c", " -d") + " " + file() + nasty("pwned", "-- pwned", "-c", "-")
	case 9:
		return l.pick("diff cmp comm join paste") + " " + l.one("", "-u ", "-q ") + file() + " " + file() +
			nasty("-l", "--paginate", "--to-file=x", "-r", "--output=pwned", "-o pwned")
	case 10:
		return "echo " + l.word() + " " + l.word() + nasty("-e '\\x41'", "$((x))", "${v@P}")
	case 11:
		return "printf " + l.one("'%s\\n'", "'%d'", `"%s"`, "%b", "%q", "'%n'", "-v x", "'%(%Y)T'", "'%*d'", "--",
			"-v 'a[$(evil)]'", "'%s%n'", "%5.2f") + " " + l.one("'a[$(evil)]'", "x", l.word(), "'x[`evil`]'")
	case 12:
		return l.one("test", "[", "[[") + " " + l.one("-f a.txt", "-d sub", "-z ''", "1 -eq 1", "a = b", "-v x",
			"-v 'a[$(evil)]'", "x -eq 1", "'a[$(evil)]' -eq 1", "! -e x", "-n \"$x\"", "-t 1", "-R x", "a == a",
			"! -v 'a[$(evil)]'", "-f a -a -v 'a[$(evil)]'", "'-v' 'a[$(evil)]'") + l.one(" ]", " ]]", "")
	case 13:
		return "xxd " + l.one("", "-l 3 ", "-p ", "-c 4 ") + file() + nasty("pwned", "-r", "-p", "-- pwned", "-r -p",
			"-revert")
	case 14:
		return l.pick("od hexdump base64 stat file") + " " + l.one("", "-c ", "-C ", "-d ", "-L ", "-b ") + file() +
			nasty("-m b.go", "-C -m b.go", "-z", "-o pwned", "-f a.txt", "-i pwned", "--compile")
	case 15:
		return "jq " + l.one(".", "-r '.a[]'", "-c .a", "'.a[0].b'", "--arg x y .", "-n 1", "-n '$ENV'", "-n env",
			"'import \"x\" as x; .'", "-f b.go", "--rawfile x a.txt .", "'input_filename'", "-L . .",
			"--slurpfile x ../outside .", "-- .", "-n 'foo'") + " c.json" + nasty("../outside", "-- ../outside")
	case 16:
		return "git " + l.gitFlags() + l.one("log --oneline", "log", "log -p", "log --format=%H", "log --format='%G?'",
			"log --pretty=mine", "log --oneline --show-signature", "status", "diff", "diff HEAD~1 HEAD", "show",
			"show --oneline --no-ext-diff --no-textconv --submodule=short", "show HEAD:b.go",
			"diff-tree -p --no-ext-diff --no-textconv --submodule=short HEAD~1 HEAD", "diff-tree -p HEAD", "ls-files",
			"ls-files -m", "ls-files -s", "ls-tree HEAD", "ls-tree -r HEAD", "cat-file -p HEAD",
			"cat-file --filters HEAD:b.go", "cat-file --textconv HEAD:b.go", "rev-parse HEAD", "branch",
			"branch --list", "tag --list", "tag",
			"blame b.go", "grep foo", "rev-list HEAD", "l", "log --oneline -3",
			"show --format=medium --no-ext-diff --no-textconv --submodule=short --stat",
			"show --oneline --no-ext-diff --no-textconv --submodule=short --submodule=diff",
			"show --oneline --no-patch --no-ext-diff --no-textconv --submodule=short v1",
			"log --format='%(describe)'", "rev-list --count HEAD", "describe", "stash list", "config -l",
			"archive HEAD", "log --oneline --output=pwned", "grep -O foo", "fetch", "diff-tree --root HEAD") +
			nasty("--output=pwned", "--ext-diff", "--textconv", "-O evil", "--no-index a b", "../outside")
	case 17:
		return "git " + l.one("--version", "version", "branch --show-current", "rev-parse --show-toplevel",
			"rev-parse --abbrev-ref HEAD", "rev-parse --git-dir", "rev-parse --show-prefix",
			"rev-parse --is-inside-work-tree")
	case 18:
		return "cd " + l.one("sub", ".", "..", "sub/..", "-", "", "~", "--", "sub/../..", "$x", "-P sub") +
			l.one(" && ", "; ", " || ", " | ") + l.one("cat d.txt", "cat ../outside", "cat ../a.txt", "ls",
			"cat ../../outside", "./ls", "cat plain", "cd .. && cat ../outside")
	case 19:
		return l.one("pwd", "true", "false", ":", "whoami", "id", "uname -a", "date", "date +%Y", "date -u",
			"date 0101", "nproc", "uptime", "groups", "arch", "hostname", "hostname x", "ps", "ps aux", "sleep 0",
			"exit 0", "set -e", "set -x", "set -o pipefail", "type ls", "which ls", "command -v ls", "set -k", "set -a",
			"seq 3", "free", "tty", "df .", "du -s .")
	case 20:
		return l.pick("cut column tr") + " " + l.one("-d: -f1", "a-z A-Z", "-t", "-c 1-3", "-d a", "-s ' '") + " " +
			l.one("", file())
	case 21:
		return l.pick("basename dirname realpath readlink") + l.one("", " -f", " -s .txt") + " " + file()
	case 22:
		return l.one("cat", "ls", "head", "echo") + " " + l.one("../outside", "~/plain", "~/.ssh/id_rsa",
			"sub/../../outside", "/proc/self/environ", "/proc/self/root/etc/passwd", "../ws/a.txt", "\"../outside\"",
			"..//outside", "'..'/outside", `.\./outside`, "*/../../outside", "sub/*/../../../outside", ".?/outside",
			"?./outside", "[.][.]/outside", "../ou*", "$HOME/plain", "~/p*", "sub/.*/../outside", ".*/outside",
			"@(..)/outside", "{..,..}/outside", "~+/../outside")
	case 23:
		return l.pick("tree du df ls") + " " + l.one("-a", "-L 1", "-h", "-o pwned", "-R", "-d", "--output=pwned",
			"-H . -o pwned", "sub")
	default:
		name := l.one(Approved()...)
		s := name
		for l.in(2) {
			s += " " + l.word()
		}
		return s
	}
}

func (l *Lines) gitFlags() string {
	quiet := "--no-pager --no-lazy-fetch -c core.fsmonitor=false -c core.hooksPath=/dev/null -c " +
		"log.showSignature=false "
	switch l.r.IntN(6) {
	case 0:
		return ""
	case 1:
		return quiet + l.one("-c core.fsmonitor=evil ", "-c alias.log=!evil ", "-C sub ", "--exec-path=. ", "-p ",
			"--paginate ", "--git-dir=x ", "-c log.showSignature=true ", "--config-env=core.fsmonitor=x ")
	case 2:
		return strings.Replace(quiet, l.one("--no-pager ", "-c core.fsmonitor=false ", "-c log.showSignature=false ",
			"--no-lazy-fetch "), "", 1)
	}
	return quiet
}
