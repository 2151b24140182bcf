package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/talk/session"
)

const (
	summarise = "Summarise this conversation for yourself: you will go on with the work having only the summary " +
		"and the last few messages. Keep, exactly as they are: what the user asked for and decided, file names, " +
		"commands, identifiers, figures and error messages that still matter. Then: what is done, what was found " +
		"out, what failed and why, what comes next. Leave out what is of no use any more. Answer with the summary " +
		"alone; do not call tools."
	summarised  = "The conversation until here was longer than fits. This is its summary:\n\n"
	unanswered  = "This came before, and was too long to be answered. Its beginning and end:\n\n"
	wordForWord = "The user's last message, word for word:\n\n"
	// longestAsked limits that message.
	longestAsked = 20_000
	// keptShare is the share of the window for messages that are kept unchanged.
	keptShare = 0.2
	// usualWindow is assumed for a model whose window is not known.
	usualWindow  = 128_000
	usualCompact = 0.6
)

// fit shortens the conversation if it nearly fills the context of the model.
func (l *loop) fit(ctx context.Context) error {
	window, share := l.window()
	if float64(l.talk.tokens()) < share*float64(window) || len(l.talk.messages) < 3 {
		return nil
	}
	if err := l.shorten(ctx, "auto", ""); !errors.Is(err, errLeftWhole) {
		return err
	}
	return nil // the conversation still fits, so a refusal of the host does not fail the turn
}

// CompactCommand is the command, without its slash, that shortens the conversation in a turn of its own.
const CompactCommand = "compact"

// asksToShorten reports whether a message is only CompactCommand. wish is the text after it, for the summary.
func asksToShorten(message []model.Block) (wish string, ok bool) {
	if len(message) != 1 || message[0].Kind != model.Text {
		return "", false
	}
	words := strings.TrimSpace(message[0].Text)
	wish, ok = strings.CutPrefix(words, "/"+CompactCommand)
	after := strings.TrimSpace(wish)
	return after, ok && (after == "" || after != wish) // not /compactor
}

// shortenNow shortens the conversation because a person asked for it.
func (l *loop) shortenNow(ctx context.Context, wish string) error {
	if len(l.talk.messages) < 2 {
		l.tell(event.Event{Kind: event.Text, Session: l.mind.o.ID, Text: "There is nothing to shorten yet."})
		return nil
	}
	return l.shorten(ctx, "manual", wish)
}

// errLeftWhole is the cause of an error if the host refuses to shorten the conversation.
var errLeftWhole = errors.New("left whole")

func (l *loop) window() (tokens int64, share float64) {
	p := l.client().Profile()
	return cmp.Or(p.Window, usualWindow), cmp.Or(p.Compact, usualCompact)
}

// shorten replaces the old part of the conversation with a summary that the model writes. It cuts where all earlier
// calls have their results. wish is what a person wants of the summary, or "".
func (l *loop) shorten(ctx context.Context, trigger, wish string) error {
	before := l.talk.tokens()
	window, _ := l.window()
	// A model that refuses the conversation may have a smaller window than is known.
	budget := min(int64(keptShare*float64(window)), before/3)
	if trigger == "manual" {
		budget = 0
	}
	cut := l.cut(budget)
	if cut < 1 {
		alone := "the last message alone is longer than the model can take"
		return &model.Error{Trouble: model.Overflow, Message: alone}
	}
	if l.journal != nil && l.talk.numbers[cut] == 0 {
		cut = len(l.talk.messages) // the journal cannot express where they begin
	}
	word := l.callHook(ctx, agent.Moment{Name: agent.Shortening, Text: trigger})
	if word.Decision == event.Deny {
		return fault.New(fault.ContextFull, "the host does not let the conversation be shortened: %s", word.Reason).
			Because(errLeftWhole)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wish != "" {
		wish = "The user wishes of the summary: " + wish + "\n\n"
	}
	summary, err := l.summary(ctx, l.talk.messages[:cut], wish+word.Context)
	if err != nil {
		return err
	}
	text := summarised + summary
	if asked := lastAsked(l.talk.messages[:cut]); asked != "" && lastAsked(l.talk.messages[cut:]) == "" {
		text += "\n\n" + wordForWord + asked
	}
	first := words(model.User, text)
	if trigger == "auto" && persona(l.talk.messages[cut:]) == nil { // otherwise a message that stays has it
		first.Blocks = append(persona(l.talk.messages[:cut]), first.Blocks...)
	}
	record := session.Compacted{Summary: first, Trigger: trigger, Before: before}
	if cut < len(l.talk.numbers) {
		record.Keep = l.talk.numbers[cut]
	}
	return l.compact(record, l.talk.messages[cut:], l.talk.numbers[cut:])
}

// compact records a summary, which replaces the conversation except the messages that stay.
func (l *loop) compact(record session.Compacted, stay []model.Message, numbers []int64) error {
	number := int64(0)
	if l.journal != nil {
		var err error
		if number, err = l.journal.Append(record); err != nil {
			return &stop{event.FailedTurn, fault.Of(err)}
		}
	}
	shorter := &conversation{ids: l.talk.ids, number: l.talk.number}
	shorter.add(record.Summary, number)
	for i, m := range stay {
		shorter.add(m, numbers[i])
	}
	*l.talk = *shorter
	l.tell(event.Event{
		Kind: event.Compacted, Session: l.mind.o.ID,
		Compaction: &event.Compaction{Trigger: record.Trigger, Before: record.Before},
	})
	return nil
}

// longestLeft limits what is kept of a text that no turn could answer.
const longestLeft = 8_000

// clips reports whether clip may help: only messages without an answer precede this turn's message. They were too long
// for the model, and would prevent every later answer.
func (l *loop) clips() bool {
	messages := l.talk.messages
	return l.journal != nil && !l.clipped && l.asked == 0 && len(messages) == 1 &&
		len(messages[0].Blocks) > len(l.prompt.Blocks)
}

// clip shortens the texts before this turn's message.
func (l *loop) clip() error {
	l.clipped = true
	blocks := l.talk.messages[0].Blocks
	var left strings.Builder
	for _, b := range blocks[:len(blocks)-len(l.prompt.Blocks)] {
		left.WriteString(clipped(b.Text, longestLeft) + "\n\n")
	}
	record := session.Compacted{
		Summary: words(model.User, unanswered+left.String()), Trigger: "auto", Before: l.talk.tokens(),
		Keep: l.promptAt,
	}
	return l.compact(record, []model.Message{l.prompt}, []int64{l.promptAt})
}

// cut returns the index of the first message that stays. As many stay as fit into the budget, but at least the last. It
// never separates a result from its call.
func (l *loop) cut(budget int64) int {
	messages := l.talk.messages
	at := len(messages) - 1
	for at > 1 && estimate(messages[at-1:]) <= budget {
		at--
	}
	for at > 0 && answersCalls(messages[at]) {
		at-- // the calls are in the previous message
	}
	return at
}

// lastAsked returns the text of the user's last message, without results of tools, or "".
func lastAsked(messages []model.Message) string {
	for _, m := range slices.Backward(messages) {
		var b strings.Builder
		for _, block := range m.Blocks {
			if m.Role == model.User && block.Kind == model.Text {
				b.WriteString(block.Text + "\n")
			}
		}
		if b.Len() > 0 {
			return clipped(strings.TrimSpace(b.String()), longestAsked)
		}
	}
	return ""
}

// persona returns the prompt of the agent that a person has chosen, if there is one.
func persona(messages []model.Message) []model.Block {
	for _, m := range slices.Backward(messages) {
		for _, b := range slices.Backward(m.Blocks) {
			if m.Role == model.User && b.Kind == model.Text && strings.HasPrefix(b.Name, event.AgentWord) {
				return []model.Block{b}
			}
		}
	}
	return nil
}

func answersCalls(m model.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b model.Block) bool { return b.Kind == model.Result })
}

// summary asks the model for a summary. If even that is too long, it leaves out the oldest half.
func (l *loop) summary(ctx context.Context, old []model.Message, also string) (string, error) {
	for {
		request := words(model.User, strings.TrimSpace(inWords(old)+"\n\n"+summarise+"\n\n"+also))
		client := l.client()
		answer, err := client.Ask(ctx, model.Request{
			System: l.system, NoCache: true, Messages: []model.Message{request},
		}, nil)
		if err == nil {
			l.count(client, answer.Usage)
			if text := strings.TrimSpace(answer.Text()); text != "" {
				return text, nil
			}
			return "", &model.Error{Trouble: model.Garbage, Message: "the model gave no summary of the conversation"}
		}
		if e, is := errors.AsType[*model.Error](err); !is || e.Trouble != model.Overflow || len(old) < 2 {
			return "", err
		}
		old = old[len(old)/2:]
	}
}

// inWords renders a conversation as text, so that the model does not continue it, and no API rejects it.
func inWords(messages []model.Message) string {
	var b strings.Builder
	b.WriteString("<conversation>\n")
	for _, m := range messages {
		for _, block := range m.Blocks {
			switch block.Kind {
			case model.Text:
				fmt.Fprintf(&b, "<%s>\n%s\n</%s>\n", m.Role, block.Text, m.Role)
			case model.Call:
				fmt.Fprintf(&b, "<call tool=%q>%s</call>\n", block.Name, block.Input)
			case model.Result:
				fmt.Fprintf(&b, "<result>\n%s\n</result>\n", clipped(block.Text, 4000))
			case model.Image, model.File:
				b.WriteString("<attachment/>\n")
			}
		}
	}
	b.WriteString("</conversation>")
	return b.String()
}

// clipped shortens a text and keeps both ends.
func clipped(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n/2], "") + "\n[…]\n" + strings.ToValidUTF8(s[len(s)-n/2:], "")
}
