package provider

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/model"
	"omniagent/internal/sys/process"
)

// credential returns the first credential for the provider that may be sent to the endpoint. A server on this machine
// needs none.
func (o Options) credential(choice Choice) (Credential, error) {
	api, e, w := choice.api, choice.Endpoint, choice.wish
	unit := w != nil && w.Unit
	var c Credential
	var err error
	if unit {
		c, err = o.ofUnit(w, api, e)
	} else {
		c, err = o.find(api)
	}
	if err != nil {
		return Credential{}, err
	}
	if refused := checkTravel(c, e); refused != nil {
		if !e.loopback() {
			return Credential{}, refused
		}
		c = Credential{}
	}
	switch {
	case !c.none():
		return c, nil
	case e.loopback():
		return Credential{Source: "no key: the server is on this machine"}, nil
	case unit:
		return Credential{}, o.missingFor(w, e)
	}
	return Credential{}, o.missing(api, e)
}

// find searches the environment, then the keys that omniagent login stored, and for Gemini the logins that return a
// token.
func (o Options) find(api model.API) (Credential, error) {
	for _, v := range api.Keys {
		value, ok := o.get(v.Variable)
		if !ok {
			continue
		}
		c := Credential{Layer: Environment, Source: "the key in " + v.Variable, key: Hide(value)}
		if v.Token {
			c = Credential{Layer: Environment, Source: "the token in " + v.Variable, token: Hide(value)}
		}
		return c, usable(value, v.Variable)
	}
	if c, err := o.stored(account(api)); err != nil || !c.none() || !api.Google {
		return c, err
	}
	return o.googleLogin(), nil
}

// CheckKey refuses a text that cannot be a key. Its error does not quote the text.
func CheckKey(key, from string) error {
	if key == "" {
		return fault.New(fault.AuthRequired, "%s is empty", from).Hint("Give the key alone.")
	}
	return usable(key, from)
}

// usable refuses a key that cannot be sent in a header. Usually somebody read a whole file into the variable. The error
// does not quote the value.
func usable(key, from string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fault.New(fault.AuthRequired,
			"the value of %s has blanks, line breaks or other characters that no key has", from).
			Hint("Set %s to the key alone.", from)
	}
	return nil
}

// missing returns an error that lists possible credentials.
func (o Options) missing(api model.API, e Endpoint) error {
	var names []string
	for _, v := range api.Keys {
		names = append(names, v.Variable)
	}
	unset := names[0] + " is not set"
	if len(names) > 1 {
		unset = "neither " + strings.Join(names, " nor ") + " is set"
	}
	f := fault.New(fault.AuthRequired, "there is no credential for %s: %s", api.Name, unset).
		With("auth_methods", names).With("provider", api.Name)
	if api.Google {
		return f.Hint(
			"Set %s, run gcloud auth login, or point GOOGLE_APPLICATION_CREDENTIALS to a file of credentials.",
			strings.Join(names, " or "))
	}
	if e.Layer != Builtin {
		return f.Hint("Set %s to the key for %s. A server on this machine (127.0.0.1) needs none.",
			strings.Join(names, " or "), e.URL)
	}
	return f.Hint("Store one with omniagent login %s, set %s, or ask another provider with its own key: --provider %s.",
		account(api), strings.Join(names, " or "), strings.Join(o.list().others(api), ", "))
}

// missingFor returns an error that lists possible keys of a profile.
func (o Options) missingFor(w *Selection, e Endpoint) error {
	methods := append([]string{"apiKey"}, w.Instead...)
	return fault.New(fault.AuthRequired, "%s has no key for %s", w.From, e.URL).
		With("auth_methods", methods).With("provider", w.Vendor).
		Hint("Give it an apiKey, or store one: omniagent login %s", w.Vendor)
}

// others returns the APIs of other accounts.
func (l list) others(api model.API) []string {
	var all []string
	for _, one := range l {
		if account(one) != account(api) {
			all = append(all, one.Name)
		}
	}
	return all
}

// googleLogin returns a login that gets its token with the first request.
//
// The order is gcloud, then the application default credentials. A key comes before both: it is an explicit choice, and
// works at once, while gcloud takes about a second to start.
func (o Options) googleLogin() Credential {
	g := &google{gcloud: o.program("gcloud"), away: o.away(), project: o.quotaProject(), http: o.HTTP}
	var names []string
	layer, unsure := User, g.gcloud != "" && !isFile(o.ofGcloud("credentials.db"))
	switch {
	case unsure:
		names = append(names, "a login of gcloud, if it has one")
	case g.gcloud != "":
		names = append(names, "the login of gcloud")
	}
	if path, ok := o.get("GOOGLE_APPLICATION_CREDENTIALS"); ok {
		g.file, layer = path, Environment
		names = append(names, "the credentials in GOOGLE_APPLICATION_CREDENTIALS")
	} else if path := o.ofGcloud("application_default_credentials.json"); isFile(path) {
		g.file = path
		names = append(names, "the application default credentials")
	}
	if len(names) == 0 {
		return Credential{}
	}
	return Credential{
		Layer: layer, Source: strings.Join(names, ", else "), google: g, unsure: unsure && g.file == "",
	}
}

// quotaProject returns the project to charge for a person's login.
func (o Options) quotaProject() string {
	for _, name := range []string{"GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_CLOUD_PROJECT"} {
		if value, ok := o.get(name); ok && usable(value, name) == nil {
			return value
		}
	}
	return ""
}

// ofGcloud returns the path of a file that gcloud keeps, or "".
func (o Options) ofGcloud(name string) string {
	dir := ""
	if value, ok := o.get("CLOUDSDK_CONFIG"); ok {
		dir = value
	} else if value, ok := o.get("APPDATA"); ok && runtime.GOOS == "windows" {
		dir = filepath.Join(value, "gcloud")
	} else if o.Home != "" {
		dir = filepath.Join(o.Home, ".config", "gcloud")
	}
	if dir == "" || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Join(dir, name)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// away returns the starter of gcloud, with the variables that it reads.
func (o Options) away() process.Programs {
	away := o.Programs
	for _, name := range []string{
		"CLOUDSDK_CONFIG", "CLOUDSDK_ACTIVE_CONFIG_NAME", "CLOUDSDK_CORE_PROJECT", "CLOUDSDK_CORE_ACCOUNT",
		"CLOUDSDK_PYTHON", "GOOGLE_APPLICATION_CREDENTIALS",
	} {
		if value, set := o.get(name); set {
			away.Env = append(slices.Clip(away.Env), name+"="+value)
		}
	}
	return away
}

// program returns the path of a program in PATH, or "".
func (o Options) program(name string) string { return process.Find(name, o.get) }
