package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/event"
	"omniagent/internal/text"
	"omniagent/internal/toolspec"
)

// The names of the tools that ask a person.
const (
	QuestionName = event.FormTool
	PlanName     = "ExitPlanMode"
)

const questionExample = `{"questions": [{"question": "Which database?", "header": "Database", "options": [{"label": "SQLite", "description": "a file"}, ` +
	`{"label": "Postgres", "description": "a server"}], "multiSelect": false}]}`

// AskUserQuestion asks a person what only they can decide.
func AskUserQuestion() Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: QuestionName, Kind: event.Other,
			Description: "Asks the user one to four questions at once, each with the answers to choose from; they " +
				"may also answer in words of their own. Use it " +
				"where the work cannot go on sensibly without their decision, not for what you can find out yourself.",
			Input: json.RawMessage(
				`{"type":"object","properties":{"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{` +
					`"question":{"type":"string","description":"The whole question"},` +
					`"header":{"type":"string","description":"What it is about, in one or two words"},` +
					`"options":{"type":"array","minItems":2,"maxItems":4,"items":{"type":"object","properties":{"label":{"type":"string","description":"The answer, in a few words"},` +
					`"description":{"type":"string","description":"What it means"}},"required":["label","description"]}},` +
					`"multiSelect":{"type":"boolean","description":"Several may be chosen"}},"required":["question","header","options","multiSelect"]}}},"required":["questions"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput(QuestionName, raw, questionExample, []string{"questions"}, nil)
			var questions []event.FormQuestion
			for i, one := range in.list("questions", true) {
				var q event.FormQuestion
				if json.Unmarshal(one, &q) != nil || strings.TrimSpace(q.Question) == "" {
					in.problem("question %d has not the form of one", i+1)
				}
				questions = append(questions, q)
			}
			if in.err() == nil && len(questions) == 0 {
				in.problem("there is no question")
			}
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Other, Title: asked(questions), Input: in.json(), Person: true,
				Form: func(filled json.RawMessage, said string) (Result,
					bool,
				) {
					return answers(questions, filled, said)
				},
				Run: func(context.Context, func(string)) Result {
					return Result{Text: "Nobody was asked.", Failed: true}
				},
			}, nil
		},
	}
}

// asked is the questions as a person reads them.
func asked(questions []event.FormQuestion) string {
	var b strings.Builder
	for i, q := range questions {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(text.Visible(q.Question))
		for _, o := range q.Options {
			b.WriteString("\n- " + text.Visible(o.Label))
			if o.Description != "" {
				b.WriteString(": " + text.Visible(o.Description))
			}
		}
	}
	return b.String()
}

// answers tells the model what a person said. Answers are found by the words of their questions.
func answers(questions []event.FormQuestion, filled json.RawMessage, said string) (Result, bool) {
	var form struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	_ = json.Unmarshal(filled, &form) // what has not that form has no answers
	var b strings.Builder
	for _, q := range questions {
		var one string
		var several []string
		answer := form.Answers[q.Question]
		if json.Unmarshal(answer, &several) == nil {
			one = strings.Join(several, ", ")
		} else if json.Unmarshal(answer, &one) != nil {
			continue
		}
		if strings.TrimSpace(one) != "" {
			fmt.Fprintf(&b, "%s\n-> %s\n", q.Question, one)
		}
	}
	if said = strings.TrimSpace(said); said != "" {
		b.WriteString("The user says: " + said + "\n")
	}
	if b.Len() == 0 {
		return Result{
			Text: "The user has chosen none of the answers. Go on as you think best, and say what you have assumed.",
		}, false
	}
	return Result{Text: "The user has answered.\n" + strings.TrimSpace(b.String())}, true
}

const planExample = `{"plan": "1. Add a test that shows the fault.\n2. Mend the parser."}`

// ExitPlanMode hands over a plan. Who agrees to it ends the mode that only plans.
func ExitPlanMode() Tool {
	return Tool{
		Tool: toolspec.Tool{
			Name: PlanName, Kind: event.Other,
			Description: "Shows the user your plan and asks whether it may be carried out. Call it when the plan is " +
				"whole. If they agree, the mode plan has ended " +
				"and you do it; if not, their reason comes back and you plan again.",
			Input: json.RawMessage(
				`{"type":"object","properties":{"plan":{"type":"string","description":"The plan, in Markdown"}},"required":["plan"]}`),
		},
		Plan: func(raw json.RawMessage) (Action, error) {
			in := readInput(PlanName, raw, planExample, []string{"plan"}, nil)
			plan := in.text("plan", true)
			if in.raw("plan") != nil && strings.TrimSpace(plan) == "" {
				in.problem("%q is empty", "plan")
			}
			if err := in.err(); err != nil {
				return Action{}, err
			}
			return Action{
				Kind: event.Other, Title: "Carry out this plan?", Input: in.json(), Person: true,
				Run: func(context.Context, func(string)) Result {
					return Result{Text: "The user agrees with the plan. The mode plan has ended: carry it out."}
				},
			}, nil
		},
	}
}
