// Package provider decides which model is used, behind which API, with which credential.
//
// It promises: the choice depends on what was typed, then on a profile, then on the one key in the environment, and
// never on what happens to listen or to be installed; a credential is only sent to an endpoint that was declared at
// least as reliably as itself, never in the clear over a network that the user did not choose, and never appears in our
// texts; and an error names what would make the choice. It never stores anything, never guesses between two accounts,
// and never invents a price.
package provider

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/text"
)

// The words of --provider.
const (
	OpenAI    = "openai" // Chat Completions, and every server that speaks it
	Codex     = "codex"  // OpenAI's Responses
	Gemini    = "gemini"
	Anthropic = "anthropic"
)

// Copilot is a word for a program, which a caller may drive in place of a model API. Choose refuses it.
const Copilot = "copilot"

// Names returns the values of --provider, in the order in which they are listed.
func Names() []string { return []string{OpenAI, Codex, Gemini, Anthropic} }

// Options is what the choice depends on.
type Options struct {
	Provider, Model, Base string // as typed; empty: not typed

	Profile *Profile                         // what configuration says; nil: nothing
	Lookup  func(name string) (string, bool) // the environment; a variable that is empty counts as not set
	Home    string                           // where the application default credentials of gcloud are
	HTTP    *http.Client                     // nil: the wire's own
	First   time.Duration                    // until the headers of an answer; 0: the wire's own
	Idle    time.Duration                    // between two bytes of it; 0: the wire's own
}

// Choice is the chosen model. It can be printed: fmt and json show no secret of it.
type Choice struct {
	Provider string
	Model    string
	Endpoint Endpoint
	How      string // why this provider, for people
	Login    string // which credential is sent, for people
	Note     string // what a person should know of this combination; mostly empty
	Known    model.Profile

	credential Credential
	options    Options
}

// Choose chooses.
func Choose(o Options) (Choice, error) {
	if o.Lookup == nil {
		o.Lookup = func(string) (string, bool) { return "", false }
	}
	c := Choice{options: o}
	var err error
	if c.Provider, c.How, err = o.provider(); err != nil {
		return Choice{}, err
	}
	if p := o.Profile; p != nil && !p.speaks(c.Provider) {
		o.Profile, c.options.Profile = nil, nil // it is for another provider
	}
	if c.Endpoint, err = o.endpoint(c.Provider); err != nil {
		return Choice{}, err
	}
	if c.Model, err = o.model(c.Provider, c.Endpoint); err != nil {
		return Choice{}, err
	}
	if c.credential, err = o.credential(c.Provider, c.Endpoint); err != nil {
		return Choice{}, err
	}
	c.Login = c.credential.Source
	c.Known = o.known(c)
	if c.Provider == OpenAI && c.Endpoint.Layer == Builtin && onlyResponses(c.Model) {
		c.Note = c.Model + " takes tools only through the Responses API: --provider codex"
	}
	return c, nil
}

// With returns the same choice with another model: the same API, address and credential. The name of one of Anthropic's
// families stands for its newest model; any other name is used unchanged.
func (c Choice) With(name string) (Choice, error) {
	o := c.options
	if o.Model = name; c.Provider == Anthropic {
		o.Model = cmp.Or(map[string]string{
			"opus": "claude-opus-5-5", "sonnet": "claude-sonnet-5-5",
			"haiku": "claude-haiku-5-5",
		}[strings.ToLower(name)], name)
	}
	if strings.TrimSpace(name) == "" {
		return Choice{}, fault.New(fault.ArgError, "no model is named")
	}
	var err error
	if c.Model, err = o.model(c.Provider, c.Endpoint); err != nil {
		return Choice{}, err
	}
	c.options, c.Known, c.Note = o, o.known(c), ""
	return c, nil
}

// known returns the data of the model of a choice.
func (o Options) known(c Choice) model.Profile {
	known := Known(c.Provider, c.Model)
	known.Search = known.Search && c.Endpoint.Layer == Builtin
	if p := o.Profile; p != nil && p.Output > 0 {
		known.Output = p.Output
	}
	return known
}

// provider returns the provider, and why it was chosen.
func (o Options) provider() (word, how string, err error) {
	if o.Provider != "" {
		word, err = o.word(o.Provider)
		return word, "--provider", err
	}
	if p := o.Profile; p != nil && p.Provider != "" {
		word, err = o.word(p.Provider)
		return word, p.name(), err
	}
	var found []sign
	for _, s := range signs() {
		if s.chooses(o) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 1:
		return found[0].provider, found[0].variable + " in the environment", nil
	case 0:
		return "", "", o.nothingChosen()
	}
	if slices.IndexFunc(found, func(s sign) bool { return s.provider != found[0].provider }) < 0 {
		return found[0].provider, found[0].variable + " in the environment", nil
	}
	var have, flags []string
	for _, s := range found {
		have = append(have, s.variable)
		if flag := "--provider " + s.provider; !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return "", "", fault.New(fault.MissingArgument, "the environment has %s, and which one to use was not said",
		strings.Join(have, " and ")).
		Hint("Choose with %s.", strings.Join(flags, " or ")).With("found", have).With("choices", Names())
}

// word checks the value of --provider.
func (o Options) word(given string) (string, error) {
	switch word := strings.ToLower(strings.TrimSpace(given)); word {
	case OpenAI, Codex, Gemini, Anthropic:
		return word, nil
	case "claude":
		return Anthropic, nil
	case "google":
		return Gemini, nil
	case Copilot:
		return "", fault.New(fault.ArgError, "copilot is a program, not a model API").
			Hint("Drive the installed program: omniagent start --agent copilot")
	default:
		f := fault.New(fault.ArgError, "there is no provider %q", given).Hint("Choose one of %s.",
			strings.Join(Names(), ", "))
		if near := text.Nearest(word, Names()); near != "" {
			f = f.Hint("Did you mean %s? There are %s.", near, strings.Join(Names(), ", "))
		}
		return "", f
	}
}

// sign is a variable that shows which provider the user has.
type sign struct {
	provider, variable string
	address            bool // it is an address, which only counts if no key is needed there
}

func signs() []sign {
	return []sign{
		{Anthropic, "ANTHROPIC_AUTH_TOKEN", false},
		{Anthropic, "ANTHROPIC_API_KEY", false},
		{OpenAI, "OPENAI_API_KEY", false},
		{Gemini, "GOOGLE_API_KEY", false},
		{Gemini, "GEMINI_API_KEY", false},
		{Anthropic, "ANTHROPIC_BASE_URL", true},
		{OpenAI, "OPENAI_BASE_URL", true},
	}
}

func (s sign) chooses(o Options) bool {
	value, ok := o.get(s.variable)
	return ok && (!s.address || loopbackURL(value))
}

// nothingChosen lists what would make the choice.
func (o Options) nothingChosen() error {
	return fault.New(fault.AuthRequired, "no model was chosen, and the environment has no key that would").
		With("auth_methods", []string{
			"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY",
			"GOOGLE_API_KEY",
		}).
		With("choices", Names()).
		Hint("Set ANTHROPIC_API_KEY (anthropic), OPENAI_API_KEY (openai, codex) or GEMINI_API_KEY (gemini); or use " +
			"--provider gemini with a login of " +
			"gcloud; or --provider openai --api-base http://127.0.0.1:PORT/v1 --model NAME for a server on this " +
			"machine.")
}

// model returns the model's name.
func (o Options) model(provider string, e Endpoint) (string, error) {
	name, from := strings.TrimSpace(o.Model), "--model"
	if name == "" && o.Profile != nil {
		name, from = strings.TrimSpace(o.Profile.Model), o.Profile.name()
	}
	if name == "" {
		if provider == OpenAI && e.Layer != Builtin {
			// Servers that are only compatible have models of their own; asking for OpenAI's would fail later and say
			// less.
			return "", fault.New(fault.MissingArgument, "%s has models of its own, and none was named",
				e.URL).Hint("Name one with --model.")
		}
		return Default(provider), nil
	}
	if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '?' || r == '#' }) {
		return "", fault.New(fault.ArgError, "%q, from %s, is not the name of a model", name,
			from).Hint("The default is %s.", Default(provider))
	}
	return name, nil
}

func (o Options) get(name string) (string, bool) {
	value, ok := o.Lookup(name)
	value = strings.TrimSpace(value)
	return value, ok && value != ""
}
