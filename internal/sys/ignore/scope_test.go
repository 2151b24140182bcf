package ignore

import "testing"

// TestOrder: which file's rules count where several say something.
func TestOrder(t *testing.T) {
	yes, no := Of("x"), Of("!x")
	var none *Scope
	top := none.Enter("", Files{Repository: true, Git: yes, Exclude: no, User: no})
	for name, test := range map[string]struct {
		scope *Scope
		want  Verdict
	}{
		"nothing":                        {none, None},
		"git outside of a repository":    {none.Enter("", Files{Git: yes}), None},
		"ignore outside of a repository": {none.Enter("", Files{Ignore: yes}), Ignored},
		"git before exclude":             {top, Ignored},
		"exclude before user": {
			none.Enter("", Files{Repository: true, Exclude: yes, User: no}),
			Ignored,
		},
		"user": {none.Enter("", Files{Repository: true, User: yes}), Ignored},
		"ignore before git": {
			top.Enter("d", Files{Git: yes}).Enter("d/e", Files{Ignore: no}),
			Included,
		},
		"ignore from above before git": {none.Enter("", Files{Ignore: no}).Enter("d",
			Files{Repository: true, Git: yes}), Included},
		"own before ignore": {none.Enter("", Files{Own: no, Ignore: yes}), Included},
		"own from above before ignore": {
			none.Enter("", Files{Own: yes}).Enter("d", Files{Ignore: no}),
			Ignored,
		},
		"deeper before above":     {top.Enter("d", Files{Git: no}), Included},
		"a repository in another": {top.Enter("d", Files{Repository: true}), None},
		"beneath a repository in another": {top.Enter("d", Files{Repository: true, Git: no}).Enter("d/e",
			Files{Git: Of("y")}), Included},
		"ignore is not stopped by either": {
			none.Enter("", Files{Ignore: yes}).Enter("d", Files{Repository: true}),
			Ignored,
		},
		"git above the repository": {
			none.Enter("", Files{Git: yes}).Enter("d", Files{Repository: true}),
			None,
		},
		"a directory without rules of its own": {top.Enter("d", Files{}), Ignored},
	} {
		if got := test.scope.Match("d/e/x", false); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
