package provider

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/literal"
	"omniagent/internal/sys/workspace"
)

// The defaults of a profile in ~/.eidolon.
const (
	eidolonVendor   = "siliconflow"
	eidolonModel    = "minimax-m2"
	eidolonBase     = "https://api.siliconflow.cn/v1"
	eidolonVariable = "SILICONFLOW_API_KEY"
	eidolonSecond   = "SILICONFLOW_TOKEN"
	eidolonLimit    = 20_000
	eidolonProtocol = "xnl"
	maxEidolon      = 1 << 20
)

// Profile is a model that a file in ~/.eidolon or in a project describes.
type Profile struct {
	Name     string // empty for the single profile of the older format
	Vendor   string // its provider, in the words of the file
	Model    string
	Kind     string // the API: openai or anthropic
	Base     string // empty for the vendor's address of that API
	Key      Secret
	Output   int64 // most tokens of an answer
	Input    int64 // characters to read into a conversation at once
	Protocol string
	Layer    Layer
	File     string
}

// Profiles holds the profiles of a user and of a project.
type Profiles struct {
	All     []Profile // in the order of the files; a profile replaces an earlier one of the same name as a whole
	Chosen  int       // index in All, or -1
	Project string    // the project's file that names the active profile, or empty
	Notices []string  // one sentence each, for people
}

// Active returns the chosen profile, or eidolon's default if there are no profiles.
func (p Profiles) Active() Profile {
	if p.Chosen < 0 {
		return Profile{
			Vendor: eidolonVendor, Model: eidolonModel, Kind: openAIKind, Base: eidolonBase,
			Output: eidolonLimit, Input: eidolonLimit, Protocol: eidolonProtocol, Layer: Builtin,
		}
	}
	return p.All[p.Chosen]
}

// Named returns the profile with that name.
func (p Profiles) Named(name string) (Profile, bool) {
	i := slices.IndexFunc(p.All, func(one Profile) bool { return one.Name == name })
	if i < 0 {
		return Profile{}, false
	}
	return p.All[i], true
}

// EidolonFiles returns the files of profiles in a home directory or a project, the strongest last.
func EidolonFiles(dir string) []string {
	return []string{filepath.Join(dir, ".eidolon", "config.json"), filepath.Join(dir, ".eidolon.json")}
}

// ReadProfiles reads the profiles of a user, and of a project if trusted accepts the content of the file. It skips
// files that are missing or unreadable.
func ReadProfiles(home, project string, trusted func(path string, content []byte) bool) Profiles {
	r := profileReader{Profiles: Profiles{Chosen: -1}}
	if home != "" {
		for _, path := range EidolonFiles(home) {
			r.file(path, User, nil)
		}
	}
	if project != "" && filepath.Clean(project) != filepath.Clean(home) {
		for _, path := range EidolonFiles(project) {
			r.file(path, Project, trusted)
		}
	}
	return r.end()
}

type profileReader struct {
	Profiles
	active string
	from   string   // the file that names the active profile
	older  *Profile // the profile of the older format
}

func (r *profileReader) notice(format string, args ...any) {
	r.Notices = append(r.Notices, fmt.Sprintf(format, args...))
}

func (r *profileReader) file(path string, layer Layer, trusted func(string, []byte) bool) {
	data, err := workspace.ReadFile(path, maxEidolon)
	if errors.Is(err, fault.FileMissing) {
		return
	}
	if err == nil && layer == Project && (trusted == nil || !trusted(path, data)) {
		r.notice("%s is not trusted, so its models do not count; look at it, then run: omniagent trust", path)
		return
	}
	var tree literal.Value
	if err == nil {
		tree, err = literal.ParseJSON5(data)
	}
	if err != nil {
		r.notice("%s does not count: %v", path, err)
		return
	}
	if tree.Kind != literal.Object {
		r.notice("%s does not count: it must be an object", path)
		return
	}
	r.shape(tree, path, literal.Object, "models")
	if older, ok := r.shape(tree, path, literal.Object, "model"); ok {
		p := r.profile(older, layer, path)
		p.Name, r.older = "", &p
	}
	r.shape(tree, path, literal.String, "models", "active")
	if active := member(tree, "models", "active"); active != "" {
		if r.active, r.from = active, path; layer == Project {
			r.Project = path
		}
	}
	profiles, _ := r.shape(tree, path, literal.Array, "models", "profiles")
	for _, one := range profiles.Items {
		if one.Kind != literal.Object {
			r.notice("%s:%d: a profile does not count: it must be an object", path, one.Pos.Line)
			continue
		}
		p := r.profile(one, layer, path)
		if p.Name == "" {
			r.notice("%s:%d has a profile without a name, which does not count", path, one.Pos.Line)
			continue
		}
		if i := slices.IndexFunc(r.All, func(have Profile) bool { return have.Name == p.Name }); i >= 0 {
			r.All[i] = p
		} else {
			r.All = append(r.All, p)
		}
	}
}

// shape returns the value at a path of a file if it is of the wanted kind, and notes one that is not. Null counts as
// absent.
func (r *profileReader) shape(
	tree literal.Value, file string, kind literal.Kind, path ...string,
) (literal.Value, bool) {
	at, given := tree.Lookup(path...)
	if given && at.Kind != kind && at.Kind != literal.Null {
		r.notice("%s:%d: %s does not count: it must be %s", file, at.Pos.Line, strings.Join(path, "."),
			map[literal.Kind]string{
				literal.Object: "an object", literal.Array: "an array", literal.String: "a string",
			}[kind])
	}
	if at.Kind != kind {
		return literal.Value{}, false
	}
	return at, given
}

// member returns the text at a path of an object, or "".
func member(v literal.Value, path ...string) string {
	at, _ := v.Lookup(path...)
	return strings.TrimSpace(at.Str)
}

// Kinds of APIs in profiles.
const (
	openAIKind    = "openai"
	anthropicKind = "anthropic"
)

// profile reads one profile and fills in the defaults.
func (r *profileReader) profile(v literal.Value, layer Layer, path string) Profile {
	limit := func(name string) int64 {
		at, given := v.Lookup(name)
		n, ok := at.Int()
		switch {
		case ok && n > 0:
			return n
		case given && at.Kind != literal.Null:
			r.notice("%s:%d: %s does not count: it must be a whole number above 0", path, at.Pos.Line, name)
		}
		return eidolonLimit
	}
	for _, name := range []string{"name", "provider", "model", "baseUrl", "apiKey", "toolProtocol", "apiKind"} {
		r.shape(v, path, literal.String, name)
	}
	p := Profile{
		Name: member(v, "name"), Vendor: cmp.Or(member(v, "provider"), eidolonVendor),
		Model: cmp.Or(member(v, "model"), eidolonModel), Kind: openAIKind, Base: member(v, "baseUrl"),
		Key: Hide(member(v, "apiKey")), Output: limit("maxOutputTokens"), Input: limit("maxInputChars"),
		Protocol: strings.ToLower(cmp.Or(member(v, "toolProtocol"), eidolonProtocol)), Layer: layer, File: path,
	}
	switch kind := member(v, "apiKind"); kind {
	case anthropicKind:
		p.Kind = kind
	case openAIKind, "":
	default:
		r.notice("%s:%d: there is no apiKind %s, so %s is asked as openai; anthropic is the other one", path,
			v.Pos.Line, kind, p.Title())
	}
	if p.Base == "" && p.Kind == openAIKind {
		p.Base = eidolonBase
	}
	return p
}

// end chooses the active profile.
func (r *profileReader) end() Profiles {
	if len(r.All) == 0 && r.older != nil {
		r.All = []Profile{*r.older}
	}
	if len(r.All) == 0 {
		return r.Profiles
	}
	r.Chosen = max(0, slices.IndexFunc(r.All, func(p Profile) bool { return p.Name == r.active }))
	if r.active == "" && len(r.All) > 1 {
		r.notice("no file of profiles names the active one; %s is used", r.All[r.Chosen].Title())
	}
	if r.active != "" && r.All[r.Chosen].Name != r.active {
		r.notice("%s names the profile %s, which does not exist; %s is used", r.from, r.active, r.All[r.Chosen].Title())
	}
	return r.Profiles
}

// Title returns the name of a profile for people.
func (p Profile) Title() string {
	if p.Name == "" {
		return "the model in " + cmp.Or(p.File, "eidolon's defaults")
	}
	return "the profile " + p.Name
}

// foreign reports whether the profile's address belongs to another vendor, which must not get SiliconFlow's key.
func (p Profile) foreign() bool {
	return p.Vendor != eidolonVendor && p.Base != eidolonBase && !loopbackURL(p.Base)
}

// Selection returns the profile as a selection.
func (p Profile) Selection() Selection {
	w := Selection{
		Provider: p.Kind, Model: p.Model, Base: p.Base, Layer: p.Layer, From: p.Title(), Profile: p.Name, Unit: true,
		Vendor: p.Vendor, Key: p.Key, Output: p.Output, Protocol: p.Protocol,
	}
	if !p.foreign() {
		w.Instead = []string{eidolonVariable, eidolonSecond}
	}
	return w
}

// Selection returns the active profile as a selection, or nil.
func (p Profiles) Selection() *Selection {
	if p.Chosen < 0 {
		return nil
	}
	w := p.Active().Selection()
	return &w
}

// EidolonDefault returns the model that eidolon uses without a profile.
func EidolonDefault() Selection {
	w := Profiles{Chosen: -1}.Active().Selection()
	w.Profile = eidolonVendor
	return w
}

// Recorded returns the model in a conversation's record as a wish. If its profile no longer exists, the address has no
// key, because no other key is meant for it.
func (p Profiles) Recorded(w Selection) Selection {
	w.From = "the record of the conversation"
	i := slices.IndexFunc(p.All, func(one Profile) bool {
		if w.Profile == "" {
			return one.Name == "" && one.Base != "" && one.Base == w.Base
		}
		return one.Name == w.Profile
	})
	var found Selection
	switch {
	case i >= 0:
		found = p.All[i].Selection()
	case w.Profile == eidolonVendor:
		found = EidolonDefault()
	default:
		w.Unit = w.Profile != ""
		return w
	}
	if found.Provider != w.Provider { // the profile has changed
		w.Unit = true
		return w
	}
	found.Model = cmp.Or(w.Model, found.Model)
	found.From += ", which the conversation began with"
	return found
}
