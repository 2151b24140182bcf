package model

import "unicode/utf8"

// Estimate estimates the tokens of a request: one for four characters, and the usual cost of an image or a page.
func Estimate(q Request) int64 {
	n := 0
	for _, s := range q.System {
		n += utf8.RuneCountInString(s)
	}
	for _, t := range q.Tools {
		n += len(t.Name) + utf8.RuneCountInString(t.Description) + len(t.Input)
	}
	for _, m := range q.Messages {
		n += characters(m.Blocks)
	}
	return int64(n+3) / 4
}

// EstimateOutput estimates the tokens of an answer.
func EstimateOutput(blocks []Block) int64 { return int64(characters(blocks)+3) / 4 }

func characters(blocks []Block) int {
	n := 0
	for _, b := range blocks {
		n += utf8.RuneCountInString(b.Text) + len(b.Name) + len(b.Input) + characters(b.Parts)
		switch b.Kind {
		case Image:
			n += 4 * 1500
		case File: // a page of a PDF has about 30 KB and costs about 2,000 tokens
			n += 4*2000 + len(b.Data)/4
		}
	}
	return n
}
