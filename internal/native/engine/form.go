package engine

import (
	"context"
	"encoding/json"
	"slices"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/schema"
	"omniagent/internal/llm/model"
	"omniagent/internal/native/tool"
)

// formName is the tool with which the model gives an answer in a form.
const formName = "StructuredOutput"

// Form is the JSON schema that an answer has to match.
type Form struct {
	schema  *schema.Schema
	input   json.RawMessage // the schema as the input schema of a tool
	retries int             // how often the model is asked again for an answer that matches
}

// NewForm reads the schema of an answer. It fails if that is not a valid JSON schema of an object.
func NewForm(written []byte, retries int) (*Form, error) {
	bad := func(format string, args ...any) (*Form, error) {
		return nil, fault.New(fault.ArgError, "the schema of the answer "+format, args...).
			Hint(`give a JSON schema of an object: {"type":"object","properties":{…}}`)
	}
	s, err := schema.Parse(written)
	if err != nil {
		return bad("is wrong: %v", err)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(written, &object) != nil || object == nil {
		return bad("is not an object")
	}
	switch kind := string(object["type"]); kind {
	case `"object"`:
	case "":
		object["type"] = json.RawMessage(`"object"`) // the input of a tool is an object
	default:
		return bad("is that of %s, and an answer can only be an object", kind)
	}
	input, err := json.Marshal(object)
	if err != nil {
		return bad("cannot be handed on: %v", err)
	}
	return &Form{s, input, retries}, nil
}

// tool returns the tool with which the model gives the answer.
func (f *Form) tool() tool.Tool {
	return tool.Tool{
		ToolSpec: event.ToolSpec{
			Name: formName,
			Description: "Gives the final answer, in the form that was asked for. Call it once, when the work " +
				"is done, " +
				"with the whole answer: nothing else is read.",
			Input: f.input,
		},
		Plan: func(input json.RawMessage) (tool.Action, error) {
			if err := f.schema.Validate(input); err != nil {
				return tool.Action{}, fault.New(
					fault.ArgError, "The answer does not fit its form: %v. Correct it, and call %s again", err,
					formName)
			}
			taken := func(context.Context) tool.Result {
				return tool.Result{Text: "The answer has been taken."}
			}
			return tool.Action{Kind: event.Other, Title: "Give the answer", Input: input, Run: taken}, nil
		},
	}
}

// exhausted reports whether the model has ended the turn too often without an answer that matches the form.
func (l *loop) exhausted() bool { return l.forms() && l.formErrors > l.mind.o.Form.retries }

// forms reports whether the answer has to match a form. A sub-agent's answer does not.
func (l *loop) forms() bool { return l.mind.o.Form != nil && l.outer == nil }

// answers reports whether a call gives the answer in its form. Such a call has no effect, so nobody is asked about it.
func (l *loop) answers(s *step) bool { return l.forms() && s.call.Name == formName }

// gaveForm reports whether the answer in its form was among these calls.
func (l *loop) gaveForm(calls []model.Block) bool {
	return l.given != nil && slices.ContainsFunc(calls, func(c model.Block) bool { return c.Name == formName })
}
