package parts

import (
	"cmp"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/config"
)

// This file has what the configuration and the profiles say about the model.

// The keys of the configuration that name a model.
const (
	ProviderKey = "native.provider"
	ModelKey    = "native.model"
	BaseKey     = "native.api_base"
)

// ConfiguredModel returns what the configuration says about the model, or nil if it says nothing. If a layer names the
// provider, a model or an address of a lower layer is ignored: it belongs to another provider.
func ConfiguredModel(c *contract.Call) []provider.Selection {
	var w provider.Selection
	rank := lowest
	for _, key := range []struct {
		name string
		to   *string
	}{{ProviderKey, &w.Provider}, {ModelKey, &w.Model}, {BaseKey, &w.Base}} {
		v, ok := c.Config.Lookup(key.name)
		if !ok || strings.TrimSpace(v.Text) == "" || rankOf(c, v) > rank {
			continue
		}
		*key.to = v.Text
		w.From = cmp.Or(w.From, key.name+" in "+sourceOf(v))
		switch key.name {
		case ProviderKey:
			rank = rankOf(c, v)
		case BaseKey:
			w.Layer, w.From = LayerOf(c, v), key.name+" in "+sourceOf(v)
		}
	}
	if w.From == "" {
		return nil
	}
	return []provider.Selection{w}
}

const lowest = 3

// rankOf returns the rank of a value's layer; 0 is the highest.
func rankOf(c *contract.Call, v config.Value) int {
	switch LayerOf(c, v) {
	case provider.Environment:
		return 1
	case provider.Project:
		return 2
	case provider.Flag:
		return 0
	}
	return lowest
}

// LayerOf returns how far a value of the configuration is trusted.
func LayerOf(c *contract.Call, v config.Value) provider.Layer {
	switch {
	case strings.HasPrefix(v.Source, "flag:"):
		return provider.Flag
	case strings.HasPrefix(v.Source, "env:"):
		return provider.Environment
	case v.File != "" && v.File == c.Config.ProjectFile():
		return provider.Project
	}
	return provider.User
}

// sourceOf returns the source of a value as people read it: a variable or a file.
func sourceOf(v config.Value) string {
	if name, ok := strings.CutPrefix(v.Source, "env:"); ok {
		return name
	}
	return strings.TrimPrefix(v.Source, "file:")
}

// ProfilesOf returns the function that reads the profiles of the user and, if they are trusted, those of the project
// around a directory.
func ProfilesOf(c *contract.Call) func(dir string) provider.Profiles {
	trust := config.OpenTrust(c.TrustFile())
	return func(dir string) provider.Profiles {
		root, _ := config.ProjectRoot(dir)
		return provider.ReadProfiles(c.Host.Home(), root, trust.Trusted)
	}
}
