package stuckprompt

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"omniagent/internal/kit/text"
)

// Limits of Questions.
const (
	maxAnswer     = 64 << 10 // bytes of an answer that are read: its end
	maxOpen       = 8        // questions
	maxStatements = 3        // that may lead to a question
	maxWords      = 200      // of an answer that is only a question
)

// Questions returns the questions to the user that a model's final answer leaves open, at most the last eight. only
// reports that the answer consists of nothing else: it tells of no work and cannot go on without a reply. That is so if
// it asks for more than leave to go on, says little else, and ends by asking: only what may be chosen, or what leads to
// an answer, stands below its last question. Code, quoted lines and text in quotation marks do not
// count.
//
// The words that tell a report or an offer are English. An answer in another language is only a question if it has no
// other sentence.
func Questions(answer string) (open []string, only bool) {
	answer = strings.ToValidUTF8(answer[max(0, len(answer)-maxAnswer):], "")
	if !mayAsk(answer) {
		return nil, false
	}
	w := phrases()
	sentences := divide(answer)
	statements, offers, requests, report, last := 0, 0, 0, false, false
	for i, s := range sentences {
		switch {
		case s.text == "": // only control characters
		case s.asks && answered(sentences, i):
			statements++
			last = false
		case s.asks:
			last = true
			open = append(open, s.text)
			switch {
			case w.polite.MatchString(s.masked):
			case w.offer.MatchString(s.masked) && !w.selects.MatchString(s.masked):
				offers++
			default:
				requests++
			}
		case w.report.MatchString(s.masked) && !w.denial.MatchString(s.masked):
			report = true
		case s.item && i > 0 && sentences[i-1].block == s.block: // it follows the question of its item
			last = false
		case !s.item && !w.leadIn.MatchString(s.masked):
			statements++
			last = false
			report = report || !w.english.MatchString(s.masked)
		}
	}
	short := len(strings.Fields(answer)) <= maxWords && statements <= maxStatements
	only = short && last && !report && (requests > 0 || offers > 0 && statements == 0)
	return open[max(0, len(open)-maxOpen):], only
}

// mayAsk reports whether an answer has what a question needs. It is for most answers that have none: the vocabulary
// takes a millisecond to make.
func mayAsk(answer string) bool {
	if strings.ContainsAny(answer, "?？؟") {
		return true
	}
	answer = strings.ToLower(answer)
	return slices.ContainsFunc([]string{
		"tell me", "let me know", "specify", "provide", "choose", "pick", "clarify", "confirm", "reply with",
	}, func(words string) bool { return strings.Contains(answer, words) })
}

// answered reports whether the question is rhetorical: a statement follows it in its paragraph, and others follow that.
func answered(all []sentence, i int) bool {
	return i+1 < len(all) && !all[i+1].asks && !all[i+1].item && all[i+1].block == all[i].block &&
		all[i].block != all[len(all)-1].block
}

// vocabulary holds the words by which Questions judges a sentence.
type vocabulary struct {
	report  *regexp.Regexp // that work was done
	denial  *regexp.Regexp // that it was not
	offer   *regexp.Regexp // asks for leave to do something
	selects *regexp.Regexp // asks for more than leave
	polite  *regexp.Regexp // asks for nothing that the work needs
	request *regexp.Regexp // asks without a question mark
	leadIn  *regexp.Regexp // leads to a question
	english *regexp.Regexp // has words of English, so that the others can judge it
}

var phrases = sync.OnceValue(func() vocabulary {
	re := func(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + pattern) }
	const did = `(?:added|applied|built|changed|committed|completed|created|deleted|edited|finished|fixed` +
		`|implemented|installed|made|modified|moved|ran|refactored|removed|renamed|replaced|set up|tested` +
		`|updated|verified|wrote|written)`
	return vocabulary{
		report: re(`\b(?:I|we)(?:['’]ve| have)?(?: \w+ly| also| just| now)? ` + did + `\b|^` + did + `\b` +
			`|\b(?:has|have) (?:now )?been \w+|\b(?:is|are) now\b|\bnow (?:works?|pass(?:es)?|uses?)\b` +
			`|\btests? (?:all )?pass|\bsuccessfully\b|^(?:all )?(?:done|set|finished|summary|changes)\b` +
			`|\b(?:is|are|all) done\b`),
		denial: re(`n['’]t\b|\b(?:have|has|did) not\b|\bnot yet\b|^(?:no|nothing|none)\b`),
		offer: re(`\b(?:shall|should|can|could|may) (?:I|we)\b|\b(?:would you like|do you want|want) (?:me|us)\b` +
			`|\b(?:is|does) (?:that|this|it) (?:ok|okay|fine|look|sound)\b`),
		selects: re(`\b(?:or|which|what|where|who|when|how)\b`),
		polite: re(`\b(?:anything|something|what) else\b|\balso\b|\bas well\b` +
			`|\bhow (?:does|do) (?:that|this|it) (?:look|sound)\b|\bany (?:other )?questions\b`),
		request: re(`^(?:please |so )?(?:tell me|let me know (?:which|what|whether|how|where|who)|specify|provide` +
			`|choose|pick|clarify|confirm|reply with)\b`),
		leadIn: re(`[:：]$|\b(?:need|before I|before we|clarif\w+|clearer|unclear|not sure|unsure|ambiguous|missing` +
			`|could mean|questions?|to (?:proceed|continue|go on|start))\b` +
			`|^(?:sure|ok|okay|hello|hi|thanks?|great|happy to|let me know|please|I can|I cannot)\b`),
		english: re(`\b(?:the|a|an|to|I|is|are|and|of|you|for|in|it|this|that|we|with|no|not|or|has|have|there` +
			`|your)\b`),
	}
})

// sentence is a sentence of an answer.
type sentence struct {
	text   string // without Markdown
	masked string // with x for each byte of code, quotations and addresses
	block  int    // the paragraph or list item in which it stands
	item   bool   // of a list, or a heading
	asks   bool
}

// divide returns the sentences of a Markdown text. Those in code blocks and quoted lines are left out.
func divide(answer string) []sentence {
	var all []sentence
	var block strings.Builder
	count, inItem, heading, fenced, blank := 0, false, false, "", true
	flush := func() {
		all = append(all, sentencesOf(block.String(), count, inItem)...)
		block.Reset()
		count++
		inItem = false
	}
	marker := regexp.MustCompile(`^\s*(?:[-*+•]|\d{1,2}[.)]|[A-Za-z][.)]|#{1,6})\s+`)
	for line := range strings.Lines(answer) {
		line = strings.TrimRight(line, " \t\r\n")
		trimmed := strings.TrimSpace(line)
		switch fence := trimmed[:min(3, len(trimmed))]; {
		case fenced != "":
			if fence == fenced {
				fenced = ""
			}
			continue
		case fence == "```" || fence == "~~~":
			fenced = fence
			flush()
			continue
		}
		code := blank && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"))
		blank = trimmed == ""
		mark := marker.FindString(line)
		if mark != "" || blank || heading {
			flush()
		}
		switch {
		case strings.HasPrefix(trimmed, ">"), mark == "" && code:
			flush()
			blank = blank || code // so that the next line of the code is code
		default:
			inItem = inItem || mark != ""
			heading = strings.HasPrefix(trimmed, "#")
			block.WriteString(strings.TrimSpace(line[len(mark):]) + " ")
		}
	}
	flush()
	return all
}

// sentencesOf divides a paragraph. A full stop ends a sentence unless a small letter follows, as after "e.g.".
func sentencesOf(paragraph string, block int, item bool) []sentence {
	var all []sentence
	paragraph = strings.TrimSpace(paragraph)
	masked := mask(paragraph)
	from := 0
	for i, r := range masked {
		next := i + utf8.RuneLen(r)
		if next < len(masked) && !strings.ContainsRune(".!?…。！？؟", r) {
			continue
		}
		rest := strings.TrimLeft(masked[next:], `*_)"'”»`)
		after := strings.TrimLeft(rest, " ")
		first, _ := utf8.DecodeRuneInString(after)
		if after != "" && strings.ContainsRune(".!?…", r) && (rest == after || unicode.IsLower(first)) {
			continue
		}
		end := len(masked) - len(after)
		s := sentence{block: block, item: item, masked: strings.Trim(masked[from:end], " *_")}
		s.text = text.OneLine(text.Cut(strings.Trim(paragraph[from:end], " *_"), 4*maxQuestion), maxQuestion)
		s.asks = strings.HasSuffix(strings.TrimRight(s.masked, `*_)"'”» `), "?") ||
			strings.ContainsAny(s.masked, "？؟") || phrases().request.MatchString(s.masked)
		if s.masked != "" {
			all = append(all, s)
		}
		from = end
	}
	return all
}

// mask writes an x for each byte of what does not speak for the answer: code, quotations, addresses.
func mask(paragraph string) string {
	quoted := regexp.MustCompile("`[^`]*`" + `|"[^"]*"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|\bhttps?://\S+`)
	return quoted.ReplaceAllStringFunc(paragraph, func(s string) string { return strings.Repeat("x", len(s)) })
}
