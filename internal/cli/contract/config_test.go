package contract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"omniagent/internal/testkit/hermetic"
)

const twoContexts = "output = \"tsv\"\ncurrent_context = \"home\"\n[context.home]\ngrace = " +
	"\"3s\"\n[context.work]\ngrace = \"4s\"\n"

func TestConfigFlags(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	t.Run("only_file", func(t *testing.T) {
		w := newWorld(t)
		w.configure(t, "output = \"tsv\"\nlock_timeout = \"3s\"\n")
		only := filepath.Join(w.dir, "only.toml")
		if err := os.WriteFile(only, []byte("grace = \"7s\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{only, "only.toml", "./only.toml"} { // the user's file would make it tsv
			w.run(t, "where", "--config", name).must(t, 0).want(t, "meta.config_sources", `["`+only+`"]`)
		}
		if a := w.run(t, "where"); !strings.HasPrefix(a.stdout, "dir\t") {
			t.Errorf("without the flag: %s", a.stdout)
		}
		a := w.run(t, "--show-config", "--config", only, "--output", "json").must(t, 0)
		a.want(t, "data.effective_config.grace", `"7s"`)
		a.want(t, "data.sources.lock_timeout", `"default"`)
		missing := w.run(t, "where", "--config", "absent.toml", "--output", "json").must(t, 2)
		missing.want(t, "data", "null")
		if message := missing.at(t, "error.message").(string); !strings.Contains(message, "absent.toml") {
			t.Error(message)
		}
	})
	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		w.configure(t, "output = \"tsv\"\ngrace = \"7s\"\n")
		w.run(t, "where", "--no-config").must(t, 0).want(t, "meta.config_sources", "[]")
		w.configure(t, "this is [no TOML")
		w.run(t, "where", "--no-config").must(t, 0)
		w.run(t, "where", "--output", "json").must(t, 2).want(t, "error.code", `"CONFIG_INVALID"`)
		a := w.with("OMNIAGENT_GRACE=9s").run(t, "--show-config", "--no-config", "--output", "json").must(t, 0)
		a.want(t, "data.effective_config.grace", `"9s"`)
		a.want(t, "data.sources.grace", `"env:OMNIAGENT_GRACE"`)
		if b := w.with("OMNIAGENT_OUTPUT=id").run(t, "show", "cells", "--no-config"); b.stdout != "tab here\n" {
			t.Errorf("the environment does not count: %s", b.stdout)
		}
	})
	t.Run("context", func(t *testing.T) {
		w := newWorld(t)
		file := w.configure(t, twoContexts)
		for _, row := range []struct {
			args          []string
			context, want string
		}{
			{nil, "home", "3s"}, {[]string{"--context", "work"}, "work", "4s"}, {
				[]string{"--context=home"},
				"home",
				"3s",
			},
		} {
			a := w.run(t, slices.Concat([]string{"--show-config", "--output", "json"}, row.args)...).must(t, 0)
			a.want(t, "meta.context", `"`+row.context+`"`)
			a.want(t, "data.effective_config.grace", `"`+row.want+`"`)
			if source := a.at(t, "data.sources.grace").(string); !strings.HasPrefix(source, "file:"+file+":") {
				t.Error(source)
			}
		}
		a := w.run(t, "ok", "--context", "wrok", "--output", "json").must(t, 2)
		if !strings.Contains(a.stdout, "home") || !strings.Contains(a.stdout, "work") {
			t.Errorf("those there are, are not named: %s", a.stdout)
		}
		if none := newWorld(t).run(t, "ok").must(t, 0); slices.Contains(keysOf(none.at(t, "meta")), "context") {
			t.Error("a context, and none is configured")
		}
	})
	t.Run("show", func(t *testing.T) {
		w := newWorld(t)
		file := w.configure(t, "lock_timeout = \"3s\"\nscopes = [\""+testKey+"\"]\n")
		a := w.with("OMNIAGENT_GRACE=9s").run(t, "--show-config").must(t, 0)
		a.want(t, "data.effective_config.lock_timeout", `"3s"`)
		a.want(t, "data.sources.grace", `"env:OMNIAGENT_GRACE"`)
		a.want(t, "data.sources.max_stdin_bytes", `"default"`)
		if source := a.at(t, "data.sources.lock_timeout").(string); !strings.HasPrefix(source, "file:"+file) {
			t.Error(source)
		}
		order, _ := a.at(t, "data.precedence_order").([]any)
		if len(order) < 4 || order[0] != "flag" || order[1] != "env" || order[len(order)-1] != "default" {
			t.Errorf("%q", order)
		}
		if strings.Contains(a.stdout+a.stderr, testKey) {
			t.Errorf("a secret is shown: %s", a.stdout)
		}
	})
}

func TestCwd(t *testing.T) {
	t.Parallel()
	hermetic.Long(t)
	w := newWorld(t)
	sub := filepath.Join(w.dir, "sub")
	if err := os.MkdirAll(filepath.Join(sub, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Run("relative", func(t *testing.T) {
		for _, row := range []struct{ cwd, file, dir, given string }{
			{sub, "a.txt", sub, sub + "/a.txt"},
			{"sub", "a.txt", sub, sub + "/a.txt"},
			{"sub/deep/..", "deep/../b", sub, sub + "/b"},
			{"sub", "../c", sub, w.dir + "/c"},
			{"sub", "/etc/x", sub, "/etc/x"},
			{".", "a", w.dir, w.dir + "/a"},
		} {
			a := w.run(t, "where", "--cwd", row.cwd, "--file", row.file).must(t, 0)
			a.want(t, "data.dir", `"`+row.dir+`"`)
			a.want(t, "data.given", `"`+row.given+`"`)
			for _, name := range keysOf(a.at(t, "data")) {
				if path := a.at(t, "data."+name).(string); name != "output" && !filepath.IsAbs(path) {
					t.Errorf("%s is %q", name, path)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(sub, "own.toml"), []byte("grace = \"1s\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		w.hosted(t, nil, "where", "--cwd", "sub", "--config", "own.toml").must(t, 0).want(t, "meta.config_sources",
			`["`+sub+`/own.toml"]`)
	})
	t.Run("missing", func(t *testing.T) {
		file := filepath.Join(w.dir, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"absent", "/absent/dir", file, "file/x"} {
			a := w.run(t, "make", "x", "--cwd", dir).must(t, 2)
			if !strings.Contains(a.stdout, `"param":"cwd"`) {
				t.Error(a.stdout)
			}
		}
		if _, err := os.Stat(filepath.Join(w.dir, "runs")); err == nil {
			t.Error("it ran")
		}
	})
	t.Run("process", func(t *testing.T) {
		before, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		other := t.TempDir() // where no call has been before
		w.hosted(t, nil, "where", "--cwd", other).must(t, 0).want(t, "data.dir", `"`+other+`"`)
		if after, err := os.Getwd(); err != nil || after != before {
			t.Errorf("%s becomes %s, %v", before, after, err)
		}
	})
	t.Run("meta", func(t *testing.T) {
		real, err := filepath.EvalSymlinks(w.dir)
		if err != nil {
			t.Fatal(err)
		}
		a := w.run(t, "ok").must(t, 0)
		if cwd := a.at(t, "meta.cwd").(string); !filepath.IsAbs(cwd) || cwd != real && cwd != w.dir {
			t.Errorf("%q is not %q", cwd, real)
		}
		if slices.Contains(keysOf(a.at(t, "meta")), "project_root") {
			t.Error("there is no project")
		}
		if err := os.MkdirAll(filepath.Join(sub, ".git"), 0o700); err != nil {
			t.Fatal(err)
		}
		a = w.run(t, "ok", "--cwd", "sub/deep").must(t, 0)
		a.want(t, "meta.cwd", `"`+sub+`/deep"`)
		a.want(t, "meta.project_root", `"`+sub+`"`)
	})
}
