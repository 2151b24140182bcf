package xnlcall

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"omniagent/internal/kit/literal"
	"omniagent/internal/kit/text"
	"omniagent/internal/kit/xnl"
	"omniagent/internal/native/tool"
)

// tag is the name of the nodes that are calls.
const tag = "tool_call"

// writtenCall is one call that a model wrote.
type writtenCall struct {
	id      string
	lang    string
	code    string // its text as written
	raw     string // the text of the block; only in its first call
	name    string // the tool
	input   json.RawMessage
	problem string // why it cannot run; for the model
}

// resend is the advice for a block that cannot be read.
const resend = ". Please resend a valid XNL tool_call with " + unquoteStart + "/" + unquoteEnd +
	" and JavaScript code that parses."

func (c *writtenCall) reject(why string) { c.problem = why }

// reason returns why a text is not XNL, without the position, which means nothing to the model.
func reason(err error) string {
	var e *xnl.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// call reads a node of a block.
func (n names) call(node *xnl.Node) *writtenCall {
	c := &writtenCall{id: node.Metadata.String("id"), lang: node.Metadata.String("lang"), code: node.Text}
	switch {
	case node.Tag != tag:
		c.reject(fmt.Sprintf("a block has nodes %s and nothing else, but came <%s>%s", tag, node.Tag, resend))
	case node.Kind != xnl.Text:
		c.reject("the " + tag + " has no text between #> and </#>" + resend)
	case c.id == "":
		c.reject("the " + tag + " has no id, which is a text in quotes" + resend)
	case c.lang == "":
		c.reject(`the ` + tag + ` has no lang="javascript"` + resend)
	case c.lang != "javascript":
		c.reject("Unsupported lang " + text.Name(text.Cut(c.lang, 40)) + resend)
	default:
		n.evaluate(c)
	}
	if c.problem != "" && node.Tag != tag {
		c.id = ""
	}
	return c
}

// evaluate parses the text of a call.
func (n names) evaluate(c *writtenCall) {
	parsed, err := literal.ParseCall([]byte(c.code))
	var syntax *literal.SyntaxError
	if errors.As(err, &syntax) {
		c.reject(syntax.Error() + resend)
		return
	}
	real := n.real[parsed.Name]
	if c.name = real; real == "" {
		c.reject(n.unknown(parsed.Name))
		return
	}
	switch len(parsed.Args) {
	case 0:
		c.input = json.RawMessage("{}")
		return
	case 1:
		if parsed.Args[0].Kind == literal.Object {
			c.input = parsed.Args[0].JSON()
			return
		}
	}
	why := parsed.Name + " takes one object, such as { key: \"value\" }"
	if real == tool.Namespace+".bash" {
		why = "Empty command rejected: " + parsed.Name + ` takes one object, such as { command: "ls" }`
	}
	c.reject(why + resend)
}

// unknown returns the answer to a call of a function that does not exist.
func (n names) unknown(name string) string {
	namespace, _, _ := strings.Cut(name, ".")
	why := name + " is not a function"
	if namespace != tool.Namespace && namespace != others {
		why = namespace + " is not defined"
	}
	if near := text.Nearest(name, n.list); near != "" {
		return why + "; did you mean " + near + "? There are " + strings.Join(n.list, ", ")
	}
	return why + ". There are " + strings.Join(n.list, ", ")
}
