package acp

import "encoding/json"

// About is what an agent declares about itself.
type About struct {
	Name, Title, Version string
	Images, Dirs, Fork   bool
	Login                *Method // how a person logs in; nil if unknown
}

// Method is a way to log in.
type Method struct{ ID, Name, About string }

// Initialized answers initialize.
func (e Encoder) Initialized(a About) any {
	info := object{"name": a.Name, "title": a.Title, "version": a.Version}
	session := object{"delete": object{}}
	if a.Dirs {
		session["additionalDirectories"] = object{}
	}
	if a.Fork {
		session["fork"] = object{}
	}
	if e.Version == V2 {
		prompt := object{"embeddedContext": object{}}
		if a.Images {
			prompt["image"] = object{}
		}
		session["prompt"], session["mcp"] = prompt, object{"stdio": object{}, "http": object{}}
		return object{"protocolVersion": V2, "info": info, "capabilities": object{"session": session}}
	}
	session["list"], session["resume"], session["close"] = object{}, object{}, object{}
	login := []object{}
	if a.Login != nil {
		login = append(login, object{"id": a.Login.ID, "name": a.Login.Name, "description": a.Login.About})
	}
	return object{
		"protocolVersion": V1, "agentInfo": info, "authMethods": login,
		"agentCapabilities": object{
			"loadSession":         true,
			"promptCapabilities":  object{"image": a.Images, "audio": false, "embeddedContext": true},
			"mcpCapabilities":     object{"http": true, "sse": false},
			"sessionCapabilities": session,
		},
	}
}

// Opened answers a request that begins or resumes a session. The id is empty for a resumed one.
func (e Encoder) Opened(id string, s Options) any {
	o := object{"configOptions": e.options(s)}.text("sessionId", id)
	if e.Version == V1 && len(s.Modes) > 0 {
		modes := []object{}
		for _, m := range s.Modes {
			modes = append(modes, object{"id": m.ID, "name": m.Name}.text("description", m.About))
		}
		o["modes"] = object{"currentModeId": s.Mode, "availableModes": modes}
	}
	return o
}

// Changed answers a request that changes an option.
func (e Encoder) Changed(s Options) any { return object{"configOptions": e.options(s)} }

// Done answers a request that has no result.
func Done() any { return object{} }

// Session is a session in a list.
type Session struct {
	ID, Dir, Title, Updated string
	Dirs                    []string
}

// Listed answers session/list.
func Listed(sessions []Session, next string) any {
	list := []object{}
	for _, s := range sessions {
		o := object{"sessionId": s.ID, "cwd": s.Dir}.text("title", s.Title).text("updatedAt", s.Updated)
		if len(s.Dirs) > 0 {
			o["additionalDirectories"] = s.Dirs
		}
		list = append(list, o)
	}
	return object{"sessions": list}.text("nextCursor", next)
}

// Spent is the usage of a turn, for clients that can show it.
type Spent struct{ Input, Output, Cached, Written, Reasoning int64 }

// Stopped answers a prompt in version 1, when its turn is over.
func Stopped(reason string, s *Spent) any {
	o := object{"stopReason": reason}
	if s != nil {
		o["usage"] = object{
			"totalTokens": s.Input + s.Output + s.Cached + s.Written, "inputTokens": s.Input, "outputTokens": s.Output,
			"cachedReadTokens": s.Cached, "cachedWriteTokens": s.Written, "thoughtTokens": s.Reasoning,
		}
	}
	return o
}

// Taken answers a prompt in version 2, when it is part of the conversation.
func Taken(message string) any { return object{"messageId": message} }

// The kinds of options of a question.
const (
	AllowOnce   = "allow_once"
	AllowAlways = "allow_always"
	RejectOnce  = "reject_once"

	RejectAlways = "reject_always"
)

// Option is an option of a question.
type Option struct{ ID, Name, Kind string }

// Permission returns the request that asks the client about a call.
func (e Encoder) Permission(session, title, why string, t *Tool, options []Option) any {
	list := []object{}
	for _, o := range options {
		list = append(list, object{"optionId": o.ID, "name": o.Name, "kind": o.Kind})
	}
	if e.Version == V1 {
		call := e.call(t)
		if why != "" { // version 1 has no member for it
			shown, _ := call["content"].([]object)
			call["content"] = append([]object{{"type": "content", "content": textOf(why)}}, shown...)
		}
		return object{"sessionId": session, "toolCall": call, "options": list}
	}
	return object{
		"sessionId": session, "title": title, "subject": object{"type": "tool_call", "toolCall": e.call(t)},
		"options": list,
	}.text("description", why)
}

// Chosen reads the response to a permission request. ok reports whether an option was chosen.
func Chosen(result json.RawMessage) (option string, ok bool) {
	var a struct {
		Outcome struct {
			Outcome string `json:"outcome"`
			Option  string `json:"optionId"`
		} `json:"outcome"`
	}
	if json.Unmarshal(result, &a) != nil || a.Outcome.Outcome != "selected" {
		return "", false
	}
	return a.Outcome.Option, true
}

// Field is a field of a form: one or several of its choices, or a text if it has none.
type Field struct {
	ID, Title, About string
	Several          bool
	Type             string // of a text: empty, string, number, integer, boolean
	Choices          []Choice
}

// Form returns the request that shows a form to a person.
func Form(session, call, text string, fields []Field) any {
	properties, required := object{}, []string{}
	for _, f := range fields {
		list := []object{}
		for _, c := range f.Choices {
			list = append(list, object{"const": c.ID, "title": c.Name}.text("description", c.About))
		}
		o := object{"type": "string"}.text("description", f.About).text("title", f.Title)
		switch {
		case f.Several:
			o["type"], o["items"] = "array", object{"anyOf": list}
		case len(list) > 0:
			o["oneOf"] = list
		}
		properties[f.ID] = o
		required = append(required, f.ID)
	}
	return object{"mode": "form", "sessionId": session, "message": text, "requestedSchema": object{
		"type": "object", "properties": properties, "required": required,
	}}.text("toolCallId", call)
}

// Filled reads the response to a form: the choices or text of each field. ok reports whether the person filled it in.
func Filled(result json.RawMessage) (fields map[string][]string, ok bool) {
	var a struct {
		Action  string                     `json:"action"`
		Content map[string]json.RawMessage `json:"content"`
	}
	if json.Unmarshal(result, &a) != nil || a.Action != "accept" {
		return nil, false
	}
	fields = map[string][]string{}
	for id, raw := range a.Content {
		var one string
		var several []string
		switch {
		case json.Unmarshal(raw, &one) == nil:
			fields[id] = []string{one}
		case json.Unmarshal(raw, &several) == nil:
			fields[id] = several
		}
	}
	return fields, true
}
