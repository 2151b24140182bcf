package cli

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"omniagent/internal/core/agent"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/setting"
)

// TestNoTermIsPassedOver: each thing that a host may ask is refused where the agent does not keep it, in words that are
// no host's flags.
func TestNoTermIsPassedOver(t *testing.T) {
	refused := func(what string, s agent.Spec, sv agent.Services) {
		t.Helper()
		err := Keep("stub", s, sv)
		if !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", what, err)
		} else if text := err.Error(); strings.Contains(text, "--") || !strings.Contains(text, "stub") {
			t.Errorf("%s: %s", what, text)
		}
	}
	terms := reflect.TypeFor[agent.Terms]()
	for i := range terms.NumField() {
		switch terms.Field(i).Name {
		case "Mode", "Bypass", "Once": // a driver knows its own modes, and may use what is promised
			continue
		}
		var s agent.Spec
		switch f := reflect.ValueOf(&s.Terms).Elem().Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(1)
		case reflect.Float64:
			f.SetFloat(1)
		case reflect.String:
			f.SetString("x")
		default:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		}
		refused(terms.Field(i).Name, s, agent.Services{})
	}
	hook := func(context.Context, agent.Moment) agent.HookAnswer { return agent.HookAnswer{} }
	refused("hooks", agent.Spec{}, agent.Services{Hook: hook})
	refused("schema", agent.Spec{Schema: []byte("{}")}, agent.Services{})
	if err := Keep("stub", agent.Spec{Terms: agent.Terms{Mode: setting.Plan}}, agent.Services{}); err != nil {
		t.Error(err)
	}
	s := agent.Spec{Terms: agent.Terms{Fork: true, System: "x"}}
	if err := Keep("stub", s, agent.Services{}, Fork, System); err != nil {
		t.Error(err)
	}
	if err := Keep("stub", s, agent.Services{}, Fork); err == nil {
		t.Error("a system prompt is passed over")
	}
}
