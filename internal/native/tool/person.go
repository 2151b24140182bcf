package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// Names of the tools that ask a person.
const (
	QuestionName = event.FormTool
	PlanName     = "ExitPlanMode"
)

// AskUserQuestion returns a tool that asks the user questions.
func AskUserQuestion() Tool {
	s := specOf(event.ToolSpec{Name: QuestionName, Kind: event.Other})
	return s.plan(func(in *input) (Action, error) {
		var questions []event.FormQuestion
		for i, one := range in.list("questions", true) {
			var q event.FormQuestion
			if json.Unmarshal(one, &q) != nil || strings.TrimSpace(q.Question) == "" {
				in.problem("question %d is not a valid question", i+1)
			}
			questions = append(questions, q)
		}
		if in.err() == nil && len(questions) == 0 {
			in.problem("there is no question")
		}
		return Action{
			Title: questionText(questions), Person: true,
			Form: func(filled json.RawMessage, said string) (Result, bool) { return answers(questions, filled, said) },
			Run: func(context.Context) Result {
				return Result{Text: "Nobody was asked.", Failed: true}
			},
		}, nil
	})
}

// questionText renders the questions for a person.
func questionText(questions []event.FormQuestion) string {
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

// answers returns the user's answers for the model. It finds them by the text of their questions.
func answers(questions []event.FormQuestion, filled json.RawMessage, remark string) (Result, bool) {
	var form struct {
		Answers map[string]json.RawMessage `json:"answers"`
	}
	_ = json.Unmarshal(filled, &form) // anything else contains no answers
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
	if remark = strings.TrimSpace(remark); remark != "" {
		b.WriteString("The user says: " + remark + "\n")
	}
	if b.Len() == 0 {
		return Result{
			Text: "The user has chosen none of the answers. Go on as you think best, and say what you have assumed.",
		}, false
	}
	return Result{Text: "The user has answered.\n" + strings.TrimSpace(b.String())}, true
}

// ExitPlanMode returns a tool that presents a plan. If the user agrees, plan mode ends.
func ExitPlanMode() Tool {
	s := specOf(event.ToolSpec{Name: PlanName, Kind: event.Other})
	return s.plan(func(in *input) (Action, error) {
		plan := in.text("plan", true)
		if in.raw("plan") != nil && strings.TrimSpace(plan) == "" {
			in.problem("%q is empty", "plan")
		}
		return Action{
			Title: "Carry out this plan?", Person: true,
			Run: func(context.Context) Result {
				return Result{Text: "The user agrees with the plan. The mode plan has ended: carry it out."}
			},
		}, nil
	})
}
