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
		switch l.r.IntN(17) {
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
	switch l.r.IntN(17) {
	case 0:
		return "ls" + l.one("", " -la", " -1", " -R", " -lh", " -t") + " " + l.one("", file(), "sub", ".") +
			nasty("--colo", "-Z", "-D", "--hyperlink", "*", "--", "-L link", "-RL")
	case 1:
		return l.pick("cat tac rev nl wc head tail md5sum sha256sum fold") + l.one("", " -n 2", " -c 3", " -v", " -2") +
			" " + file() + nasty("--files0-from=a.txt", "-f", "-c", "--check", "> pwned", "-o pwned", "link")
	case 2:
		return "grep" + l.one("", " -rn", " -i", " -c", " -E", " -A2", " -2", " -P", " -m 1", " -A 2") + " " +
			l.one("foo", "'foo'", `"fo$"`, "'$(evil)'", l.word()) + " " + file() + nasty("-f evil", "-R",
			"--exclude-from=x", "-d read", "-f ../outside", "-f../outside", "-e x ../outside", "-z", "link")
	case 3:
		return "sort" + l.one("", " -n", " -u", " -k2", " -t: -k1,1", " -rn") + " " + file() + nasty("-o pwned",
			"-opwned", "--output=pwned", "--compress-program=evil -S 1b", "-T sub", "--files0-from=x", "--outp=pwned",
			"-no pwned", "--random-source=x -R", "-uopwned", "-k1opwned", "-t -o pwned")
	case 4:
		return "uniq" + l.one("", " -c", " -d", " -f1") + nasty("a.txt pwned", "pwned", "-- pwned", "-", "- pwned")
	case 5:
		return l.pick("cmp comm paste") + " " + l.one("", "-1 ", "-s ") + file() + " " + file() +
			nasty("-l", "--to-file=x", "-r", "--output=pwned", "-o pwned", "link")
	case 6:
		return "echo " + l.word() + " " + l.word() + nasty("-e '\\x41'", "$((x))", "${v@P}")
	case 7:
		return l.pick("od stat file") + " " + l.one("", "-c ", "-d ", "-L ", "-b ") + file() +
			nasty("-m b.go", "-C -m b.go", "-z", "-o pwned", "-f a.txt", "-i pwned", "--compile", "link")
	case 8:
		return "cd " + l.one("sub", ".", "..", "sub/..", "-", "", "~", "--", "sub/../..", "$x", "-P sub", "link",
			"two") + l.one(" && ", "; ", " || ", " | ") + l.one("cat d.txt", "cat ../outside", "cat ../a.txt", "ls",
			"cat ../../outside", "./ls", "cat plain", "cd .. && cat ../outside", "cat ../link")
	case 9:
		return l.one("pwd", "true", "false", ":", "whoami", "id", "uname -a", "date", "date -u", "date 0101", "nproc",
			"uptime", "groups", "sleep 0", "type ls", "which ls", "df .", "du -s .", "date -s 1", "type -a x")
	case 10:
		return l.pick("cut tr") + " " + l.one("-d: -f1", "a-z A-Z", "-t", "-c1-3", "-d a", "-s ' '") + " " +
			l.one("", file())
	case 11:
		return l.pick("basename dirname realpath readlink") + l.one("", " -f", " -s .txt") + " " + file()
	case 12:
		return l.one("cat", "ls", "head", "echo") + " " + l.one("../outside", "~/plain", "~/.ssh/id_rsa",
			"sub/../../outside", "/proc/self/environ", "/proc/self/root/etc/passwd", "../ws/a.txt", "\"../outside\"",
			"..//outside", "'..'/outside", `.\./outside`, "*/../../outside", "sub/*/../../../outside", ".?/outside",
			"?./outside", "[.][.]/outside", "../ou*", "$HOME/plain", "~/p*", "sub/.*/../outside", ".*/outside",
			"@(..)/outside", "{..,..}/outside", "~+/../outside", "link", "sub/../link", "./link")
	case 13:
		return "sed " + l.one("-n 1,2p", "-n '1p'", "-n '/foo/p'", "-ne 2p", "-n '1p;3q'", "1p", "-n '2,$p'") + " " +
			file() + nasty("-i", "-e 'w pwned'", "-e '1e evil'", "-f b.go", "-n 's/a/b/w pwned'", "--in-place", "-ni",
			"-e 's/x/y/e'", "-s -i.bak", "-- 'w pwned'", "-n 'w pwned' a.txt", "link")
	case 14: // what is not in the list, as if it were
		return l.one("find . -exec evil {} +", "find . -delete", "sed -n 'w pwned' a.txt", "sed -n '1e evil' a.txt",
			"jq -n env c.json", "rg --pre evil foo", "git status", "git diff", "git log", "xxd a.txt pwned",
			"diff -l a.txt b.go", "tree -o pwned", "printf -v 'a[$(evil)]' x", "printf '%n' 'a[$(evil)]'",
			"test -v 'a[$(evil)]'", "[ -v 'a[$(evil)]' ]", "[[ -v 'a[$(evil)]' ]]", "[[ x -eq 1 ]]", "base64 -o pwned",
			"env", "set -x", "exit 0", "hash ls", "command evil", "timeout 5 evil", "awk 1 a.txt", "tee pwned")
	default:
		name := l.one(Approved()...)
		s := name
		for l.in(2) {
			s += " " + l.word()
		}
		return s
	}
}
