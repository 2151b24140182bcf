package modelserver

import (
	_ "embed" // the words
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed refusals.txt
var refusals string

// wording is how an API words the failure: its kind, a code or nil, and the message.
func (f Failure) wording(model string, apis ...string) (kind string, code any, message string) {
	status := strconv.Itoa(f.Status)
	if f.ContextFull {
		status = "context"
	}
	for line := range strings.Lines(refusals) {
		head, said, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		words := strings.Fields(head)
		if !slices.Contains(apis, words[0]) || words[1] != status && words[1] != "other" {
			continue
		}
		if words[3] != "-" {
			code = words[3]
		}
		if f.Message != "" {
			return words[2], code, f.Message
		}
		wait := max(f.RetryAfter, time.Second).String()
		return words[2], code, strings.NewReplacer("{model}", model, "{wait}", wait).Replace(said)
	}
	return "", nil, f.Message
}

// usual has the methods that are the same for most APIs.
type usual struct{}

func (usual) contentType() string { return "text/event-stream; charset=utf-8" }

func (usual) late(Failure) bool { return false }

func (usual) prefix(kind BlockKind) string {
	if kind == searching {
		return ""
	}
	return string(kind)
}
