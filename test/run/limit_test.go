//go:build unix

package run

import "testing"

// TestWhichLimit: the flag, then run.timeout, then the limit of every call; what nobody set decides nothing.
func TestWhichLimit(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config, env string
		flags       []string
		late        bool
	}{
		"variable": {env: "300ms", late: true},
		"key": {
			config: "[context.ci]\ntimeout = \"300ms\"\n", flags: []string{"--context", "ci"}, late: true,
		},
		"the key of runs":        {config: "[run]\ntimeout = \"300ms\"\n", env: "1h", late: true},
		"no limit for runs":      {config: "[run]\ntimeout = \"0s\"\n", env: "300ms"},
		"flag":                   {config: "[run]\ntimeout = \"300ms\"\n", flags: []string{"--timeout", "1h"}},
		"flag over the variable": {env: "300ms", flags: []string{"--timeout", "0s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.env = append(p.env, "OMNIAGENT_TIMEOUT="+row.env)
			script := `sleep 1; echo done`
			if row.late {
				script = `while :; do echo on; sleep 0.1; done`
			}
			p.agent("slow", script).configured(row.config)
			if a := p.run("slow", append([]string{"--yolo"}, row.flags...)...); row.late {
				a.is(t, 10, "timed_out", "max_duration")
			} else if a.Code != 0 {
				t.Errorf("%s", a)
			}
			p.nothing()
		})
	}
}

// TestLimitOfAnAnswer: the flag of the call that continues a run limits it, also where a process is left behind.
func TestLimitOfAnAnswer(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--detach"}} {
		p := newPlace(t).agent("slow", `while :; do echo on; sleep 0.1; done`)
		a := p.run("slow", "--yolo", "--require", "colour=Which colour?")
		p.call(append([]string{"answer", a.Data.ID, "blue", "--timeout", "1s"}, flags...)...)
		p.reaches(a.Data.ID, "timed_out")
		p.nothing()
	}
}
