package event

import (
	"encoding/json"
	"strconv"
	"strings"

	"omniagent/internal/kit/text"
)

// FormTool is the tool by which an agent asks a person to fill in a form: Claude Code's and ours.
const FormTool = "AskUserQuestion"

// Form is the input of a call of FormTool.
type Form struct {
	Questions []FormQuestion `json:"questions"`
}

// FormQuestion is one of the questions of a form.
type FormQuestion struct {
	Question string       `json:"question"`
	Header   string       `json:"header"`
	Options  []FormOption `json:"options"`
	Several  bool         `json:"multiSelect"` // several options may be chosen
}

// FormOption is an answer that a person may choose.
type FormOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// Shown returns an option in one line, as a person sees it.
func (o FormOption) Shown() string {
	line := text.OneLine(text.ForDecision(o.Label), longestOption)
	if o.Description != "" && o.Description != o.Label {
		line += ": " + text.OneLine(text.ForDecision(o.Description), longestOption)
	}
	return line
}

// longestOption limits what is shown of an option, in characters.
const longestOption = 300

// Chosen returns the labels of the options that words name by number, or words if they do not.
func (q FormQuestion) Chosen(words string) string {
	var labels []string
	for part := range strings.SplitSeq(words, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > len(q.Options) {
			return words
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	if len(labels) > 1 && !q.Several {
		return words
	}
	return strings.Join(labels, ", ")
}

// FormOf returns a question as a form.
func FormOf(a Ask) Form {
	q := FormQuestion{Question: a.Text, Header: "Question", Options: []FormOption{}}
	for _, o := range a.Options {
		q.Options = append(q.Options, FormOption{Label: o})
	}
	return Form{Questions: []FormQuestion{q}}
}

// Choices returns the options of a form with one question. Any other input has none.
func Choices(input json.RawMessage) (labels []string) {
	var form Form
	if json.Unmarshal(input, &form) != nil || len(form.Questions) != 1 {
		return nil
	}
	for _, o := range form.Questions[0].Options {
		labels = append(labels, o.Label)
	}
	return labels
}

// AnswersIn returns the answers that Filled has put into the input of a call, by the texts of their questions.
func AnswersIn(input json.RawMessage) map[string]string {
	var filled struct {
		Answers map[string]string `json:"answers"`
	}
	_ = json.Unmarshal(input, &filled)
	return filled.Answers
}

// Filled returns the input of a call with answers, by the texts of their questions.
func Filled(input json.RawMessage, answers map[string]string) json.RawMessage {
	members := map[string]any{}
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(input, &raw) // it was read as a Form before
	for name, value := range raw {
		members[name] = value
	}
	members["answers"] = answers
	line, _ := text.Line(members) // texts, and JSON that was valid
	return line
}
