package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"omniagent/internal/core/event"
)

// TestAnAnswerWaitsForNoQuestion: one that names none is for the question that is open, and where that was answered a
// moment ago it is for no later one.
func TestAnAnswerWaitsForNoQuestion(t *testing.T) {
	r := &Record{ID: "run-a", State: NeedsInput, Questions: []Question{{ID: "q1", Text: "Which?"}}}
	if id, err := r.QuestionFor(""); id != "q1" || err != nil {
		t.Errorf("%q %v", id, err)
	}
	r.Questions[0].Answer = &Answer{Text: "red", At: time.Now(), By: 1}
	if id, err := r.QuestionFor(""); err == nil || !strings.Contains(err.Error(), "was answered") {
		t.Errorf("%q %v", id, err)
	}
	r.Questions = append(r.Questions, Question{ID: "q2"}, Question{ID: "q3"})
	if id, err := r.QuestionFor(""); id != "" || err != nil {
		t.Errorf("%q %v", id, err)
	}
}

// TestQuestionNamesTheCall: the words of a question about a call have what it does, whatever its title says.
func TestQuestionNamesTheCall(t *testing.T) {
	for _, c := range []struct {
		title string
		call  event.Call
		want  string
	}{
		{"Tidy up", event.Call{Name: "execute", Command: "rm -rf x"}, "May execute run? Tidy up: rm -rf x"},
		{"rm -rf x (tidy)", event.Call{Name: "execute", Command: "rm -rf x"}, "May execute run? rm -rf x (tidy)"},
		{"Write a file", event.Call{Name: "write", Path: "/w/a"}, "May write run? Write a file: /w/a"},
		{"", event.Call{Name: "Bash", Command: "ls"}, "May Bash run? ls"},
		{"look", event.Call{Name: "Other"}, "May Other run? look"},
	} {
		if got := questionOf(event.Ask{ID: "q", Text: c.title, Tool: &c.call}).Text; got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestAnswers: each is a whole command, and the first one approves nothing, since a program might run what it reads.
func TestAnswers(t *testing.T) {
	t.Parallel()
	tool, words := Question{ID: "t", Tool: "Bash"}, Question{ID: "w"}
	for _, c := range []struct {
		open []Question
		want []string
	}{
		{nil, []string{"omniagent runs show run-1"}},
		{[]Question{tool}, []string{"omniagent answer run-1 --reject", "omniagent answer run-1 --approve"}},
		{[]Question{words}, []string{"omniagent answer run-1 'TEXT'"}},
		{[]Question{tool, words}, []string{
			"omniagent answer run-1 --question t --reject", "omniagent answer run-1 --question t --approve",
		}},
		{[]Question{words, tool}, []string{"omniagent answer run-1 --question w 'TEXT'"}},
	} {
		if got := (Record{ID: "run-1", Questions: c.open}).Answers(); !slices.Equal(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestTimesAfterTheClockWasSetBack: a run that began in the future has worked for no time, and not for less.
func TestTimesAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := Record{State: NeedsInput, Waited: time.Second}
	r.Created, r.Since = now.Add(-time.Minute), now.Add(-20*time.Second)
	if worked, waited := r.Times(now); worked != 39*time.Second || waited != 21*time.Second {
		t.Errorf("worked %v, waited %v", worked, waited)
	}
	if worked, waited := r.Times(now.Add(-time.Hour)); worked != 0 || waited != time.Second {
		t.Errorf("an hour before: worked %v, waited %v", worked, waited)
	}
}

// TestAnswersOfEarlierVersions: an answer to a question that was recorded without its call counts only for a command
// whose call has nothing else that matters. Otherwise the question is asked again.
func TestAnswersOfEarlierVersions(t *testing.T) {
	t.Parallel()
	write := event.Call{Name: "Write", Kind: event.Write, Path: "a.txt"}
	write.Input = []byte(`{"file_path":"a.txt","content":"second"}`)
	bash := func(members string) event.Call {
		input := []byte(`{"command":"make"` + members + `}`)
		return event.Call{Name: "Bash", Kind: event.Shell, Command: "make", Input: input}
	}
	const same = `,"description":"Build it.","timeout":1000`
	const background = `,"run_in_background":true`
	const unknownFile = "it is not known whether the file has changed since this was allowed"
	const unknownInput = "it is not known whether its other input has changed since this was allowed"
	for _, c := range []struct {
		name   string
		call   event.Call
		option string
		counts bool
		says   string // in the question that is asked again
	}{
		{"no to a write", write, Reject, false, ""},
		{"yes to a write", write, Approve, false, unknownFile},
		{"no to a command", bash(same), Reject, true, ""},
		{"yes to a command", bash(same), Approve, true, ""},
		{"no, then in the background", bash(background), Reject, false, ""},
		{"yes, then in the background", bash(background), Approve, false, unknownInput},
		{"yes, then with a network", bash(`,"network":true`), Approve, false, unknownInput},
		{"yes to a command without input", event.Call{Name: "Bash", Command: "make"}, Approve, true, ""},
	} {
		ask := event.Ask{ID: "2", Text: "Other words", Tool: &c.call}
		old := questionOf(ask)
		old.ID, old.Text, old.Call, old.File, old.whole = "1", "Words", "", "", false
		old.Answer, old.Attempt = &Answer{Option: c.option, Text: "the first"}, 1
		r := &Run{store: Store{Dir: t.TempDir()}}
		r.Dir, r.Questions = t.TempDir(), []Question{old}
		o := &Owner{Run: r, Log: func(string, ...any) {}, Patience: time.Minute}
		reply, wait := o.decide(ask)
		if (reply != nil) != c.counts || wait == c.counts || c.counts && reply.Option != c.option {
			t.Errorf("%s: %+v, and it waits: %v", c.name, reply, wait)
		}
		if asked := r.Open(); !c.counts && (len(asked) != 1 || !strings.Contains(asked[0].Text, c.says)) {
			t.Errorf("%s: %+v", c.name, asked)
		}
		if v := r.checkApproved(Verdict{State: Succeeded}); v.State != Succeeded { // the first question is settled
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}
