//go:build unix

package agenttest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// law is one of the laws of a conversation.
type law struct {
	number int
	name   string
	try    func(t *testing.T, s Subject)
}

// laws returns all laws.
func laws() []law {
	return []law{
		{1, "Send during a turn queues", queues},
		{2, "every accepted message has one end, in order", ends},
		{3, "Interrupt returns at once; a second one kills", interrupts},
		{4, "interrupting keeps or drops what waits", drops},
		{5, "a change is an event before what it affects", announces},
		{6, "Set holds for the next call or changes nothing", sets},
		{7, "what cannot change live is changed by a restart", restarts},
		{8, "abilities are true", abilities},
		{9, "a question is answered once", answers},
		{10, "several sub-agents ask at once", asksAtOnce},
		{11, "records are gapless and every reader agrees", agrees},
		{12, "the pieces of a text are the text", concatenates},
		{13, "a reader that stops costs nothing", stalls},
		{14, "limits hold", limits},
		{15, "Close ends everything in every state", closes},
		{16, "a host that is killed leaves a journal", killed},
		{17, "a turn that nobody asked for has its own id", wakes},
		{18, "steering reaches the turn or becomes a message", steers},
		{19, "resuming keeps the id", resumes},
		{20, "an agent forges nothing", forges},
	}
}

// Laws tries every law on a subject, each as a subtest. It skips what cannot be tried, with the reason.
func Laws(t *testing.T, s Subject) { try(t, s, laws()) }

// Few is Laws for the laws with those numbers.
func Few(t *testing.T, s Subject, numbers ...int) {
	try(t, s, slices.DeleteFunc(laws(), func(l law) bool { return !slices.Contains(numbers, l.number) }))
}

func try(t *testing.T, s Subject, some []law) {
	for _, l := range some {
		t.Run(fmt.Sprintf("law%02d %s", l.number, l.name), func(t *testing.T) {
			t.Parallel()
			if why := s.Unsaid(l.number); why != "" {
				t.Skip(why)
			}
			if l.number == heavy {
				t.Skip("it measures, so it is tried when nothing else runs: see Heavy")
			}
			l.try(t, s)
		})
	}
}

// heavy is the law that measures.
const heavy = 13

// Heavy tries only the law that measures.
func Heavy(t *testing.T, s Subject) {
	if why := s.Unsaid(heavy); why != "" {
		t.Skip(why)
	}
	usual := s.Host.Name == Direct().Name || s.Agent == "live" && s.Host.Name == "flat lines"
	if !usual && os.Getenv(floodVariable) == "" {
		t.Skip("every host reads the same journal; all of them are measured with " + floodVariable)
	}
	stalls(t, s)
}

// Unsaid is why a law cannot be tried on a subject; empty: it can.
func (s Subject) Unsaid(number int) string {
	if why := s.lacks[number]; why != "" {
		return s.Agent + ": " + why
	}
	if why := s.Host.passes; why != "" && s.Agent == "live" {
		return s.Host.Name + ": " + why
	}
	if why := s.Host.unsaid[number]; why != "" {
		return s.Host.Name + ": " + why
	}
	return ""
}

// InTurn has each law tried on only one of the subjects that it can be tried on, the next law on another. why is the
// reason that the other subjects give.
func InTurn(subjects []Subject, why string) []Subject {
	var turns []Subject
	for _, s := range subjects {
		lacks := map[int]string{}
		maps.Copy(lacks, s.lacks)
		s.lacks = lacks
		turns = append(turns, s)
	}
	for _, l := range laws() {
		able := slices.DeleteFunc(slices.Clone(turns), func(s Subject) bool { return s.Unsaid(l.number) != "" })
		for i, s := range able {
			if i != l.number%len(able) {
				s.lacks[l.number] = why
			}
		}
	}
	return turns
}

// Unsaid is a table of all that cannot be tried on the subjects, with the reasons.
func Unsaid(subjects []Subject) string {
	var b strings.Builder
	for _, s := range subjects {
		for _, l := range laws() {
			if why := s.Unsaid(l.number); why != "" {
				fmt.Fprintf(&b, "%-28s law %2d  %s\n", s.Name(), l.number, why)
			}
		}
	}
	return b.String()
}
