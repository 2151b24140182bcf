package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/safety"
	"omniagent/internal/kit/fault"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/config"
	"omniagent/internal/sys/redact"
)

func keyParam() contract.Param {
	return contract.Param{
		Name: "key", Kind: contract.ID, Position: 1, Required: true, Stdin: true,
		Help: "name of the setting, such as audit.keep",
	}
}

func globalParam() contract.Param {
	return contract.Param{Name: "global", Kind: contract.Bool, Help: "your own configuration instead of the project's"}
}

// checkEdit reports what is wrong with a key, and with the value if value is true.
func checkEdit(c *contract.Call, value bool) []fault.Problem {
	key := c.String("key")
	// a name such as api_key shows the intention; one such as nope.key may be a typing error of any setting
	if redact.Name(key) && !strings.HasSuffix(key, ".key") {
		return []fault.Problem{contract.Wrong("key", fault.SecretOnCommandLine, key,
			"secrets are not kept in the configuration: set an environment variable instead")}
	}
	if v := c.String("value"); value && redact.String(v) != v {
		return []fault.Problem{contract.Wrong("value", fault.SecretOnCommandLine, redact.String(v),
			"the value holds a secret; set it as an environment variable instead")}
	}
	if !c.Bool("global") && !c.Given("config") && c.ProjectAt(c.Dir()).Home {
		return []fault.Problem{contract.Wrong("global", fault.MissingArgument, "",
			"the home directory is not a project; add --global to change your own configuration")}
	}
	edit := config.Edit{Key: key, Keys: c.Program.ConfigKeys(), Value: c.String("value")}
	if !c.Bool("global") && !c.Given("config") {
		edit.Root = c.ProjectAt(c.Dir()).Root
	}
	return contract.ProblemsOf("key", key, config.Check(edit, value))
}

// isContext reports whether a key is the setting of that name in a context.
func isContext(key, name string) bool {
	return strings.HasPrefix(key, "context.") && strings.HasSuffix(key, "."+name)
}

// checkNamed checks that the value names an existing agent or model API, if the key is one of these settings.
func (p commands) checkNamed(c *contract.Call) []fault.Problem {
	value := c.String("value")
	var err error
	switch key := c.String("key"); {
	case key == "agent" || isContext(key, "agent"):
		_, err = p.AgentNamed(c, value)
	case key == "native.provider" || isContext(key, "native.provider"):
		err = provider.Options{APIs: p.APIs}.Check(value)
	}
	return contract.ProblemsOf("value", value, err)
}

// target returns the edit with the file to write, and the scope of that file.
func target(c *contract.Call) (config.Edit, string, error) {
	edit := config.Edit{Key: c.String("key"), Keys: c.Program.ConfigKeys(), Wait: c.LockWait(), LockDir: c.LockDir()}
	switch {
	case c.Given("config"):
		edit.File = c.Path("config")
		return edit, "session", nil
	case c.Bool("global"):
		if edit.File = c.Paths.UserConfig(); edit.File == "" {
			return edit, "", fault.New(fault.NoHome,
				"no home directory is known, so there is no configuration of your own").Hint(
				"set HOME or XDG_CONFIG_HOME")
		}
		return edit, "global", nil
	}
	place := c.ProjectAt(c.Dir())
	edit.Root, edit.File = place.Root, place.File
	edit.Trust = config.OpenTrust(c.TrustFile())
	return edit, "local", nil
}

// rawValue returns a value as it was configured: durations and sizes as text.
func rawValue(v config.Value) any {
	switch raw := v.Raw.(type) {
	case nil:
		return nil
	case int64, bool, []string:
		return raw
	}
	return v.Text
}

type changeData struct {
	Key   string  `json:"key"`
	Old   *string `json:"old_value"`
	New   *string `json:"value"`
	Scope string  `json:"scope"`
	File  string  `json:"file"`
}

// warnScope warns if the change affects other projects, or has no effect. value is "" if the key was removed.
func warnScope(c *contract.Call, edit config.Edit, scope, value string) {
	if scope == "global" {
		c.Warn("GLOBAL_CONFIG_MODIFIED", "%s holds for every project", edit.File)
	}
	for _, held := range c.Config.Everywhere(edit.Key) { // highest first
		switch all, _ := c.Config.Lookup(edit.Key); {
		case held.File == edit.File || held.Source == "default":
			continue
		case value == "":
			c.Warn("STILL_SET", "%s is still set by %s", edit.Key, held.Source)
		case !all.Sum && held.Text != value && higher(held.Source, scope):
			c.Warn("VALUE_SHADOWED", "%s is set by %s, which wins", edit.Key, held.Source)
		}
		return
	}
}

// higher reports whether a source takes precedence over the file of a scope.
func higher(source, scope string) bool {
	return strings.HasPrefix(source, "env:") || strings.HasPrefix(source, "flag:") ||
		scope == "global" && source != "default"
}

func configCommand(c contract.Command) *contract.Command {
	c.Class, c.Version, c.Scopes = contract.Envelope, "1.0.0", []string{}
	return &c
}

// configEdit adds the declarations shared by config set and config unset.
func configEdit(c contract.Command) *contract.Command {
	c.Danger, c.DryRun, c.Reversible, c.LooseConfig, c.ConfigScope = contract.Mutating, true, true, true, "local"
	c.Files = []contract.FileEffect{
		{Path: ".omniagent/config.toml", Type: "config"},
		{Path: "~/.config/omniagent/config.toml", Type: "config"},
	}
	c.Exits = append(c.Exits,
		contract.Exit{Code: contract.PreconditionFailed, When: "no home directory, or an unsafe file"},
		contract.Exit{Code: contract.Conflict, When: "another process is changing the file", Retryable: true},
		contract.Exit{Code: contract.PermissionDenied, When: "the file cannot be written"})
	return configCommand(c)
}

func (p commands) configSet() *contract.Command {
	return configEdit(contract.Command{
		Path: "config set", Summary: "set a configuration value",
		Detail: "Writes .omniagent/config.toml of the project, or with --global your own. Comments and order stay. A " +
			"project file that was\n" +
			"trusted before, or is new, is trusted with the new content.",
		Output: contract.TypeOf[changeData](),
		Params: []contract.Param{keyParam(), {
			Name: "value", Kind: contract.Text, Position: 2, Required: true, MaxLen: 4096, Help: "the value",
		}, globalParam()},
		Exits: []contract.Exit{{Code: contract.Success, When: "the value is set, or was so already"}},
		Examples: []contract.Example{
			{Description: "Results as text in this project", Command: "omniagent config set output plain"},
			{Description: "Keep more audit logs, everywhere", Command: "omniagent config set audit.keep 10 --global"},
		},
		Validate: func(c *contract.Call) []fault.Problem {
			if problems := checkEdit(c, true); len(problems) > 0 {
				return problems
			}
			return p.checkNamed(c)
		},
		Run: runConfigSet,
	})
}

func runConfigSet(ctx context.Context, c *contract.Call) (contract.Result, error) {
	edit, scope, err := target(c)
	if err != nil {
		return contract.Result{}, err
	}
	edit.Value = c.String("value")
	data := changeData{Key: edit.Key, New: &edit.Value, Scope: scope, File: edit.File}
	meta := map[string]any{"write_scope": scope}
	if c.DryRun() {
		old, err := config.Peek(edit)
		data.Old = contract.OrNil(old)
		target := map[string]any{"file": edit.File, "key": edit.Key, "old_value": data.Old, "value": edit.Value}
		return contract.Result{Data: data, Effect: effectOf(old, edit.Value), Meta: meta, Target: target}, err
	}
	old, changed, err := config.Write(ctx, edit)
	data.Old = contract.OrNil(old)
	if err != nil {
		return contract.Result{}, err
	}
	warnScope(c, edit, scope, edit.Value)
	effect := effectOf(old, edit.Value)
	if !changed {
		effect = contract.Noop
	}
	return contract.Result{Data: data, Effect: effect, Meta: meta}, nil
}

func effectOf(old, value string) contract.Effect {
	switch old {
	case "":
		return contract.Created
	case value:
		return contract.Noop
	}
	return contract.Updated
}

func configUnset() *contract.Command {
	return configEdit(contract.Command{
		Path: "config unset", Summary: "remove a configuration value", Output: contract.TypeOf[unsetData](),
		Params:   []contract.Param{keyParam(), globalParam()},
		Exits:    []contract.Exit{{Code: contract.Success, When: "the value is gone, or was not there"}},
		Examples: []contract.Example{{Description: "Back to the default", Command: "omniagent config unset output"}},
		Validate: func(c *contract.Call) []fault.Problem { return checkEdit(c, false) },
		Run: func(ctx context.Context, c *contract.Call) (contract.Result, error) {
			edit, scope, err := target(c)
			if err != nil {
				return contract.Result{}, err
			}
			data := unsetData{Key: edit.Key, Scope: scope, File: edit.File, Status: "deleted"}
			old, err := config.Peek(edit)
			changed := old != ""
			if !c.DryRun() {
				old, changed, err = config.Remove(ctx, edit)
				warnScope(c, edit, scope, "")
			}
			if err != nil {
				return contract.Result{}, err
			}
			effect := contract.Deleted
			if data.Old = contract.OrNil(old); !changed {
				data.Status, effect = "not_found", contract.Noop
			}
			return contract.Result{
				Data: data, Effect: effect, Meta: map[string]any{"write_scope": scope},
				Target: map[string]any{"file": edit.File, "key": edit.Key, "old_value": data.Old},
			}, nil
		},
	})
}

type unsetData struct {
	Key    string  `json:"key"`
	Old    *string `json:"old_value"`
	Status string  `json:"status" enum:"deleted,not_found"`
	Scope  string  `json:"scope"`
	File   string  `json:"file"`
}

type settingData struct {
	Key      string   `json:"key"`
	Value    any      `json:"value" doc:"null: not set"`
	Source   string   `json:"source"`
	Shadowed []string `json:"shadowed" doc:"lower sources that set it too"`
}

func configGet() *contract.Command {
	return configCommand(contract.Command{
		Path: "config get", Summary: "show one configuration value and where it comes from", Danger: contract.Safe,
		Output: contract.TypeOf[settingData](), Params: []contract.Param{keyParam()},
		Exits:    []contract.Exit{{Code: contract.Success, When: "the value is shown; null when nothing sets it"}},
		Examples: []contract.Example{{Description: "The form of results", Command: "omniagent config get output"}},
		Validate: func(c *contract.Call) []fault.Problem { return checkEdit(c, false) },
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			v, found := c.Config.Lookup(c.String("key"))
			if !found && !slices.ContainsFunc(c.Program.ConfigKeys(),
				func(k config.Key) bool { return k.Name == c.String("key") }) {
				return contract.Result{}, fault.New(fault.ConfigKeyUnknown,
					"%s is a key of one context; name the context with --context", c.String("key"))
			}
			v.Source = cmp.Or(v.Source, "default")
			return contract.Result{Data: settingOf(c.String("key"), v)}, nil
		},
	})
}

func settingOf(key string, v config.Value) settingData {
	return settingData{Key: key, Value: rawValue(v), Source: v.Source, Shadowed: v.Shadowed}
}

type settingRow struct {
	settingData
	Help string `json:"help"`
}

type settingsData struct {
	Settings contract.Rows[settingRow] `json:"settings"`
}

func configList() *contract.Command {
	return configCommand(contract.Command{
		Path: "config list", Summary: "list every configuration key with its value and source", Danger: contract.Safe,
		Output: contract.TypeOf[settingsData](),
		List: &contract.List{
			Key: "settings", ID: "key", Order: "key", Columns: []string{"key", "value", "source"},
		},
		Exits:    []contract.Exit{{Code: contract.Success, When: "the settings are listed"}},
		Examples: []contract.Example{{Description: "All settings", Command: "omniagent config list"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			var rows []settingRow
			for _, e := range c.Config.All() {
				rows = append(rows, settingRow{settingOf(e.Key.Name, e.Value), e.Key.Help})
			}
			return contract.Result{Data: settingsData{contract.RowsOf(rows)}}, nil
		},
	})
}

type pathRow struct {
	Layer   string `json:"layer" enum:"explicit,project,user"`
	Path    string `json:"path"`
	Exists  bool   `json:"exists"`
	Used    bool   `json:"used"`
	Trusted bool   `json:"trusted"`
}

type pathsData struct {
	Files contract.Rows[pathRow] `json:"files"`
}

func configPath() *contract.Command {
	return configCommand(contract.Command{
		Path: "config path", Summary: "show the configuration files, the strongest first", Danger: contract.Safe,
		LooseConfig: true,
		Output:      contract.TypeOf[pathsData](),
		List:        &contract.List{Key: "files", ID: "path", Order: "given"},
		Exits: []contract.Exit{{
			Code: contract.Success,
			When: "the files are listed, even if they cannot be read",
		}},
		Examples: []contract.Example{{Description: "Where the configuration is", Command: "omniagent config path"}},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			return contract.Result{Data: pathsData{contract.RowsOf(configFiles(c))}}, nil
		},
	})
}

// configFiles returns the files that are read, whether or not they exist.
func configFiles(c *contract.Call) (rows []pathRow) {
	add := func(layer, path string, trusted bool) {
		if path != "" {
			used := slices.Contains(c.Config.Sources(), path)
			rows = append(rows, pathRow{layer, path, parts.FileExists(path), used, trusted})
		}
	}
	if c.Given("config") {
		add("explicit", c.Path("config"), true)
		return rows
	}
	if place := c.ProjectAt(c.Dir()); !place.Home {
		add("project", place.File, safety.TrustedNow(c, place.File))
	}
	add("user", c.Paths.UserConfig(), true)
	return rows
}
