package redact

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"
)

func TestArgs(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"run", "--token", "abc", "--json"}, []string{"run", "--token", Mask, "--json"}},
		{[]string{"--api-key=a,b;c d", "x"}, []string{"--api-key=" + Mask, "x"}},
		{[]string{"--password", "--json"}, []string{"--password", "--json"}},
		{[]string{"--password", "-Ab3"}, []string{"--password", Mask}},
		{[]string{"--auth", "-v"}, []string{"--auth", "-v"}},
		{[]string{"-token", "abc"}, []string{"-token", Mask}},
		{[]string{"auth", "login"}, []string{"auth", "login"}},
		{[]string{"config", "set", "openai.api_key", "abc"}, []string{"config", "set", "openai.api_key", Mask}},
		{[]string{"-e", "GH_TOKEN=a b"}, []string{"-e", "GH_TOKEN=" + Mask}},
		{
			[]string{"--idempotency-key", "k1", "--token-limit=5"},
			[]string{"--idempotency-key", "k1", "--token-limit=5"},
		},
		{[]string{"--token-from-env", "GH_TOKEN"}, []string{"--token-from-env", "GH_TOKEN"}},
		{[]string{"say " + token36, "-H", "Cookie: a"}, []string{"say " + Mask, "-H", "Cookie: " + Mask}},
		{[]string{"--auth=true", "--token="}, []string{"--auth=true", "--token="}},
		{[]string{"curl", "-u", "ann:hunter2x", "https://h"}, []string{"curl", "-u", "ann:" + Mask, "https://h"}},
		{[]string{"--user=ann:hun:ter", "-uann:x"}, []string{"--user=ann:" + Mask, "-uann:" + Mask}},
		{[]string{"--proxy-user", "a:b c", "-U", ":1"}, []string{"--proxy-user", "a:" + Mask, "-U", ":" + Mask}},
		{
			[]string{"-u", "1000:1000", "-u1:2", "--user", "ann", "-u", "http://h:80/", "-umask"},
			[]string{"-u", "1000:1000", "-u1:2", "--user", "ann", "-u", "http://h:80/", "-umask"},
		},
		{[]string{}, []string{}},
	} {
		got := Args(c.in)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q becomes %q", c.in, got)
		}
		if again := Args(got); !reflect.DeepEqual(again, got) {
			t.Errorf("again: %q becomes %q", got, again)
		}
	}
}

func TestEnv(t *testing.T) {
	in := []string{
		"PATH=/bin", "OPENAI_API_KEY=a&b c", "DATABASE_URL=postgres://u:p@h/d", "PWD=/x", "NAME",
		"X=" + token36, "FOO_PASS=",
	}
	want := []string{
		"PATH=/bin", "OPENAI_API_KEY=" + Mask, "DATABASE_URL=postgres://u:" + Mask + "@h/d", "PWD=/x",
		"NAME", "X=" + Mask, "FOO_PASS=",
	}
	if got := Env(in); !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

func TestValue(t *testing.T) {
	type login struct {
		User     string
		Password string `json:"password"`
		Depth    *int
	}
	in := map[string]any{
		"token": "abc", "tokens": 12, "max_tokens": 5.5, "auth": map[string]any{
			"user": "bob", "ok": true, "n": 1,
			"none": nil, "e": "",
		},
		"list": []any{"Bearer xyz", 1, []string{token36, "x"}}, "env": map[string]string{"A_KEY": "x", "B": "y"},
		"login": &login{User: "bob", Password: "x"}, "raw": json.RawMessage(`{"cookie":"a","n":12345678901234567890}`),
		"err": errors.New("at https://u:p@h"), "u8": uint8(3), "nan": math.NaN(), "func": func() {}, "pin_secret": 1234,
	}
	before, _ := json.Marshal(in["auth"])
	want := map[string]any{
		"token": Mask, "tokens": 12, "max_tokens": 5.5, "auth": map[string]any{
			"user": Mask, "ok": true, "n": Mask,
			"none": nil, "e": "",
		},
		"list": []any{"Bearer " + Mask, 1, []string{Mask, "x"}}, "env": map[string]string{"A_KEY": Mask, "B": "y"},
		"login": map[string]any{"User": "bob", "password": Mask, "Depth": nil},
		"raw":   map[string]any{"cookie": Mask, "n": json.Number("12345678901234567890")},
		"err":   "at https://u:" + Mask + "@h", "u8": uint8(3), "func": Mask, "pin_secret": Mask,
	}
	got := Value(in).(map[string]any)
	delete(got, "nan") // NaN is not equal to itself
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %#v\nwant %#v", got, want)
	}
	if after, _ := json.Marshal(in["auth"]); string(after) != string(before) {
		t.Error("the argument was changed")
	}
	loop := map[string]any{}
	loop["self"] = loop
	Value(loop) // must end
}
