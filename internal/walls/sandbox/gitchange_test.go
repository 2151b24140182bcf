package sandbox

import (
	"strings"
	"testing"
)

// TestMayBecome: git may say where a clone comes from and what a branch follows, and nothing by which something runs or
// goes elsewhere.
func TestMayBecome(t *testing.T) {
	const (
		plain = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
		from  = plain + "[remote \"origin\"]\n\turl = https://example.com/a\n"
		whole = from + "\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
		odd   = plain + "[alias]\n\tx = \"!echo \\\"hello\\\"\"\n"
	)
	branch := func(remote string) string {
		return "[branch \"x\"]\n\tremote = " + remote + "\n\tmerge = refs/heads/x\n"
	}
	for name, c := range map[string]struct {
		old, text string
		may       bool
	}{
		"a new repository":           {"", plain, true},
		"a clone":                    {plain, from, true},
		"a clone, its second line":   {from, whole, true},
		"a branch that follows":      {whole, whole + branch("origin"), true},
		"a branch that follows here": {whole, whole + branch("."), true},
		"a branch that is gone":      {whole + branch("origin"), whole, true},
		"the same with what is odd":  {odd, odd, true},
		"a program":                  {whole, whole + "[core]\n\tfsmonitor = evil\n", false},
		"a program in one line":      {whole, whole + "[core] fsmonitor = evil\n", false},
		"a program by a continuation": {
			whole, whole + "[branch \"x\"]\n\tmerge = a\\\n[core]\n\tfsmonitor = evil\n",
			false,
		},
		"a program behind a bracket": {whole, whole + "[branch \"x\\\"]\n[core]\n\tfsmonitor = evil\n", false},
		"a program behind a return":  {whole, whole + "[branch \"x\"]\r[core]\r\tfsmonitor = evil\n", false},
		"a program behind a mark":    {plain, "\xef\xbb\xbf[core]\n\tfsmonitor = evil\n", false},
		"a program by an old name":   {whole, whole + "[core.x]\n\tfsmonitor = evil\n", false},
		"a section of another name":  {whole, whole + "[core \"x\"]\n\tbare = true\n", false},
		"a section without a name":   {from, strings.Replace(from, "[core]", "[core \"\"]", 1), false},
		"hooks elsewhere":            {whole, whole + "[core]\n\thooksPath = x\n", false},
		"an include":                 {whole, whole + "[include]\n\tpath = x\n", false},
		"an include for some":        {whole, whole + "[includeIf \"onbranch:x\"]\n\tpath = x\n", false},
		"another remote":             {whole, whole + "[remote \"evil\"]\n\turl = https://evil.example\n", false},
		"another address":            {whole, from + "\turl = https://evil.example\n", false},
		"an address to push to": {
			whole, whole + "[remote \"origin\"]\n\tpushurl = https://evil.example\n",
			false,
		},
		"a helper as the address":      {plain, plain + "[remote \"o\"]\n\turl = ext::sh -c evil\n", false},
		"an option as the address":     {plain, plain + "[remote \"o\"]\n\turl = --upload-pack=evil\n", false},
		"a branch that follows evil":   {whole, whole + branch("https://evil.example"), false},
		"a branch that changes":        {whole + branch("."), whole + branch("origin"), false},
		"what was there, in new order": {plain + "[a]\n\tx = 1\n\tx = 2\n", plain + "[a]\n\tx = 2\n\tx = 1\n", false},
		"what was there, removed":      {plain + "[core]\n\tfsmonitor = false\n", plain, false},
		"what was there, once more": {
			plain + "[a]\n\tx = 1\n\tx = 2\n", plain + "[a]\n\tx = 1\n\tx = 2\n\tx = 1\n",
			false,
		},
		"a clone from outside":           {plain, plain + "[remote \"o\"]\n\turl = /usr\n", true},
		"a branch that follows a helper": {plain, plain + branch("foo::x"), false},
		"a branch that follows a path":   {plain, plain + branch("./e.git"), false},
		"a branch that follows nothing":  {whole, whole + branch(""), false},
		"a remote that is a path":        {plain, plain + "[remote \"./e\"]\n\tfetch = x\n", false},
		"a remote without an address":    {plain, plain + "[remote \"e\"]\n\tfetch = x\n", false},
		"a remote that is a helper":      {plain, plain + "[remote \"a::b\"]\n\turl = https://a\n", false},
		"an address here":                {plain, plain + "[remote \"o\"]\n\turl = ./e.git\n", false},
		"an address in the workspace":    {plain, plain + "[remote \"o\"]\n\turl = /tmp/e.git\n", false},
		"an address by file":             {plain, plain + "[remote \"o\"]\n\turl = file:///tmp/e.git\n", false},
		"an address around":              {plain, plain + "[remote \"o\"]\n\turl = /usr/../tmp/e\n", false},
		"an address by a link":           {plain, plain + "[remote \"o\"]\n\turl = /tmp/l/../../usr\n", false},
		"an address behind a comment":    {plain, plain + "[remote \"o\"]\n\turl = e.git#:y\n", false},
		"a branch that is an option":     {plain, plain + "[branch \"o\"]\n\tvscode-merge-base = --x\n", false},
		"an address of another program":  {plain, plain + "[remote \"o\"]\n\turl = foo://x\n", false},
		"what is odd, and more":          {odd, odd + branch("."), false},
		"an update of a submodule":       {plain, plain + "[submodule \"s\"]\n\tupdate = !evil\n", false},
		"a filter":                       {plain, plain + "[filter \"f\"]\n\tclean = evil\n", false},
		"who commits":                    {plain, plain + "[user]\n\temail = evil@example.com\n", false},
	} {
		if mayBecome(c.old, c.text, []string{"/tmp"}) != c.may {
			t.Errorf("%s: %v", name, !c.may)
		}
	}
}
