package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"omniagent/internal/fault"
	"omniagent/internal/model"
	"omniagent/internal/workspace"
)

// Profile is a model that configuration describes.
type Profile struct {
	Name     string
	Provider string // a word of --provider
	Vendor   string // the vendor, in the words of the file
	Model    string
	Base     string
	Key      Secret
	Variable string // the variable that holds the key, which then wins over Key
	Output   int64  // tokens of an answer; 0: not said
	Input    int64  // characters of what a person may write at once; 0: not said
	Layer    Layer
	From     string // the file
}

func (p *Profile) name() string {
	if p.Name == "" {
		return "the model in " + cmp.Or(p.From, "the configuration")
	}
	return "the profile " + p.Name
}

// speaks reports whether the profile is for that provider. OpenAI's two APIs have one address and one key.
func (p *Profile) speaks(l list, api model.API) bool {
	of := strings.ToLower(p.Provider)
	about, known := l.find(of)
	return of == "" || known && account(about) == account(api)
}

// Defaults of an eidolon profile.
const (
	eidolonVendor   = "siliconflow"
	eidolonModel    = "minimax-m2"
	eidolonBase     = "https://api.siliconflow.cn/v1"
	eidolonVariable = "SILICONFLOW_API_KEY"
	eidolonSecond   = "SILICONFLOW_TOKEN"
	eidolonLimit    = 20_000
	maxEidolon      = 1 << 20
)

// Profiles are the profiles in the files of eidolon.
type Profiles struct {
	Active   Profile
	All      []Profile
	Problems []string // one sentence each, for the log
}

// eidolonFile is a file of profiles.
type eidolonFile struct {
	Models *struct {
		Active   string           `json:"active"`
		Profiles []eidolonProfile `json:"profiles"`
	} `json:"models"`
	Model *eidolonProfile `json:"model"` // of an older form, without a name
}

type eidolonProfile struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	APIKind  string `json:"apiKind"`
	APIKey   string `json:"apiKey"`
	BaseURL  string `json:"baseUrl"`
	Output   int64  `json:"maxOutputTokens"`
	Input    int64  `json:"maxInputChars"`
}

// ReadEidolon reads the profiles of a person and of the workspace; later files win, a profile replaces one of the same
// name as a whole. The workspace's files count only while trusted says so of their content; of others only the name of
// the active profile counts, which chooses among what the person has. It ignores files that are missing or not JSON.
func ReadEidolon(home, dir string, trusted func(path string, content []byte) bool,
	lookup func(string) (string, bool),
) Profiles {
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	var out Profiles
	active, older := "", (*Profile)(nil)
	for _, f := range eidolonFiles(home, dir) {
		data, err := workspace.ReadFile(f.path, maxEidolon)
		if errors.Is(err, fault.FileMissing) {
			continue
		}
		var file eidolonFile
		if err == nil {
			err = json.Unmarshal(data, &file)
		}
		if err != nil {
			out.Problems = append(out.Problems, f.path+" cannot be read as JSON, and is passed over")
			continue
		}
		if file.Models != nil && file.Models.Active != "" {
			active = file.Models.Active
		}
		if f.layer == Project && (trusted == nil || !trusted(f.path, data)) {
			if file.Model != nil || file.Models != nil && len(file.Models.Profiles) > 0 {
				out.Problems = append(out.Problems, f.path+" is not trusted, and its models do not count")
			}
			continue
		}
		if file.Model != nil {
			p := file.Model.profile(f.layer, f.path, lookup)
			p.Name, older = "", &p
		}
		if file.Models != nil {
			out.add(file.Models.Profiles, f, lookup)
		}
	}
	out.choose(active, older, lookup)
	return out
}

func (o *Profiles) add(all []eidolonProfile, f eidolonPlace, lookup func(string) (string, bool)) {
	for _, raw := range all {
		if raw.Name == "" {
			o.Problems = append(o.Problems, f.path+" has a profile without a name, which is passed over")
			continue
		}
		p := raw.profile(f.layer, f.path, lookup)
		if i := slices.IndexFunc(o.All, func(have Profile) bool { return have.Name == p.Name }); i >= 0 {
			o.All[i] = p
		} else {
			o.All = append(o.All, p)
		}
	}
}

func (o *Profiles) choose(active string, older *Profile, lookup func(string) (string, bool)) {
	i := slices.IndexFunc(o.All, func(p Profile) bool { return p.Name == active })
	switch {
	case i >= 0:
		o.Active = o.All[i]
	case len(o.All) > 0:
		o.Active = o.All[0]
		if active != "" {
			o.Problems = append(o.Problems, "there is no profile "+active+"; "+o.Active.Name+" is used")
		}
	case older != nil:
		o.Active = *older
	default:
		o.Active = eidolonProfile{}.profile(Builtin, "", lookup)
	}
}

type eidolonPlace struct {
	path  string
	layer Layer
}

func eidolonFiles(home, dir string) []eidolonPlace {
	var all []eidolonPlace
	for _, at := range []eidolonPlace{{home, User}, {dir, Project}} {
		if at.path == "" || at.layer == Project && home != "" && filepath.Clean(dir) == filepath.Clean(home) {
			continue
		}
		all = append(all, eidolonPlace{filepath.Join(at.path, ".eidolon", "config.json"), at.layer},
			eidolonPlace{filepath.Join(at.path, ".eidolon.json"), at.layer})
	}
	return all
}

// profile fills in defaults. SiliconFlow's variable overrides the key of a SiliconFlow profile, also a missing one; it
// is never sent to another vendor.
func (r eidolonProfile) profile(layer Layer, path string, lookup func(string) (string, bool)) Profile {
	p := Profile{
		Name: r.Name, Provider: "openai", Vendor: cmp.Or(r.Provider, eidolonVendor), Model: cmp.Or(r.Model,
			eidolonModel),
		Base: r.BaseURL,
		Key:  Hide(r.APIKey), Output: cmp.Or(max(r.Output, 0), eidolonLimit), Input: cmp.Or(max(r.Input, 0),
			eidolonLimit), Layer: layer, From: path,
	}
	if r.APIKind == "anthropic" {
		p.Provider = r.APIKind
	}
	ours := p.Vendor == eidolonVendor
	if ours || r.APIKey == "" {
		p.Variable = eidolonVariable
		if value, ok := lookup(eidolonVariable); !ok || strings.TrimSpace(value) == "" {
			if value, ok := lookup(eidolonSecond); ok && strings.TrimSpace(value) != "" {
				p.Variable = eidolonSecond
			}
		}
	}
	if p.Base == "" && p.Provider == "openai" {
		p.Base = eidolonBase
	}
	return p
}
