package setup

import (
	"context"
	"slices"
	"strings"
	"time"

	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/cli/stores"
	"omniagent/internal/kit/fault"
	"omniagent/internal/kit/text"
	"omniagent/internal/llm/provider"
	"omniagent/internal/sys/keyring"
)

type loginData struct {
	Account  string  `json:"account"`
	Place    string  `json:"place" enum:"keyring,file"`
	Path     *string `json:"path" doc:"the file that has the key; null: the system's keyring has it"`
	Replaced bool    `json:"replaced"`
}

type authMethod struct {
	Type string `json:"type" enum:"env_var,file,prompt"`
	Name string `json:"name"`
	Hint string `json:"hint"`
}

func accountParam() contract.Param {
	return contract.Param{
		Name: "provider", Kind: contract.ID, Position: 1, MaxLen: 64, Stdin: true,
		Help: "whose key: a word of --provider, or of a profile",
	}
}

func (p commands) login() *contract.Command {
	return &contract.Command{
		Path: "login", Summary: "store the key of a model API", Class: contract.Envelope, Danger: contract.Mutating,
		Version: "1.0.0",
		Detail: "On a terminal, omniagent login anthropic asks for the key.\n" +
			"The key is typed, unseen, or comes from a variable or a file; it is never an argument. The system's " +
			"keyring keeps it where there is one,\n" +
			"a file that only you can read otherwise. A key in the environment is used before a stored one.\n" +
			"Installed agents have logins of their own.",
		Auth: p.ModelKey(), Interactive: true,
		DryRun: true, Reversible: true, Scopes: []string{}, LooseConfig: true, LongRunning: true, Timeout: loginTime,
		Output: contract.TypeOf[loginData](), Children: keyHelpers(), Files: keyFile(),
		Params: []contract.Param{accountParam(), {Name: "key", Secret: true, Kind: contract.Text, Help: "the key"}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the key is stored"},
			{Code: contract.PreconditionFailed, When: "AUTH_REQUIRED: there is no key, and nobody to ask"},
			{Code: contract.AuthRequired, When: "what was given is not a key"},
			{Code: contract.Conflict, When: "another process is changing the keys", Retryable: true},
			{Code: contract.PermissionDenied, When: "the file cannot be written"},
		},
		Examples: []contract.Example{
			{Description: "From a variable", Command: "omniagent login openai --token-env-var MY_OPENAI_KEY"},
		},
		Validate: p.validateAccount, Run: p.runLogin,
	}
}

func (p commands) logout() *contract.Command {
	return &contract.Command{
		Path: "logout", Summary: "remove a stored key", Class: contract.Envelope, Danger: contract.Mutating,
		Version: "1.0.0", DryRun: true, Reversible: true, Scopes: []string{}, LooseConfig: true, LongRunning: true,
		Timeout: loginTime, Output: contract.TypeOf[logoutData](), Children: keyHelpers(), Files: keyFile(),
		Params: []contract.Param{accountParam()},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "it is gone, or was not there"},
			{Code: contract.Conflict, When: "another process is changing the keys", Retryable: true},
			{Code: contract.PreconditionFailed, When: "the keyring does not answer, or the file is not safe"},
			{Code: contract.PermissionDenied, When: "the file cannot be written"},
		},
		Examples: []contract.Example{{Description: "That of one API", Command: "omniagent logout minimax"}},
		Validate: p.validateAccount, Run: p.runLogout,
	}
}

// loginTime is long because a person may have to unlock a keyring, or to find a key and paste it.
const loginTime = 10 * time.Minute

// accountOf returns the account whose key the call is about. The default is that of the active profile or the
// configured provider.
func (p commands) accountOf(c *contract.Call) (string, error) {
	if stores.Keys(c).Path() == "" {
		return "", fault.New(fault.NoHome, "there is no place for keys: no home directory is known").Hint("set HOME")
	}
	word, vendors := c.String("provider"), []string{}
	profiles := parts.ProfilesOf(c)(c.Dir())
	for _, one := range profiles.All {
		vendors = append(vendors, strings.ToLower(one.Vendor))
	}
	stored, _ := stores.Keys(c).List() // using the store later reports the error
	for _, one := range stored {
		vendors = append(vendors, one.Name)
	}
	all := append(provider.Accounts(p.APIs), vendors...)
	slices.Sort(all)
	all = slices.Compact(all)
	if word == "" {
		if profiles.Chosen >= 0 {
			word = profiles.Active().Vendor
		}
		if name := c.Config.String(parts.ProviderKey); name != "" {
			word = name
		}
	}
	if word == "" {
		example := all[0]
		if c.Command.Path == "logout" { // nobody should remove a key by copying an example
			example = "NAME"
		}
		return "", fault.New(fault.MissingArgument, "whose key it is was not said: %s", text.Either(all)).
			Hint("omniagent %s %s", c.Command.Path, example).With("choices", all)
	}
	account := provider.AccountOf(p.APIs, word)
	if lower := strings.ToLower(word); account == "" && slices.Contains(vendors, lower) {
		account = lower
	}
	if account != "" {
		return account, nil
	}
	for _, d := range p.Agents {
		if d.Name() == word {
			return "", fault.New(fault.ArgError, "%s keeps a login of its own", word).Hint("%s", d.Describe().Login)
		}
	}
	f := fault.New(fault.ArgError, "there is no provider %q", word).With("choices", all)
	if near := text.Nearest(word, all); near != "" {
		return "", f.Hint("Did you mean %s? There are %s.", near, strings.Join(all, ", "))
	}
	return "", f.Hint("Choose one of %s.", strings.Join(all, ", "))
}

func (p commands) validateAccount(c *contract.Call) []fault.Problem {
	if c.Command.Path == "logout" && c.Given("provider") { // the account may be one that only the store knows
		return nil
	}
	_, err := p.accountOf(c)
	return contract.ProblemOf("provider", c.String("provider"), err)
}

func (p commands) runLogin(ctx context.Context, c *contract.Call) (contract.Result, error) {
	account, err := p.accountOf(c)
	if err != nil {
		return contract.Result{}, err
	}
	key, from, err := p.keyOf(ctx, c, account)
	if err != nil {
		return contract.Result{}, err
	}
	if err := provider.CheckKey(key, from); err != nil {
		return contract.Result{}, err
	}
	store := stores.Keys(c)
	target := map[string]any{"account": account}
	if c.DryRun() {
		effect := contract.Created
		if store.Has(account) {
			effect = contract.Updated
		}
		return contract.Result{Data: loginData{Account: account, Place: "file"}, Effect: effect, Target: target}, nil
	}
	place, why, was, err := store.Set(ctx, account, key)
	if err != nil {
		return contract.Result{}, err
	}
	data := loginData{Account: account, Place: string(place), Replaced: was != ""}
	if place == keyring.File {
		data.Path = contract.OrNil(store.Path())
		c.Warn("KEY_IN_FILE", "the key is in %s, which only you can read, because %s", store.Path(), why)
	}
	for _, one := range provider.Present(provider.Options{APIs: p.APIs, Lookup: parts.OwnPrograms(c)}) {
		if one.Account == account {
			c.Warn("VALUE_SHADOWED", "%s in the environment is used before the stored key", one.Source)
		}
	}
	effect := contract.Created
	if data.Replaced {
		effect = contract.Updated
	}
	return contract.Result{Data: data, Effect: effect, Target: target}, nil
}

// keyOf returns the key, and a phrase for people that says where it comes from.
func (p commands) keyOf(ctx context.Context, c *contract.Call, account string) (key, from string, err error) {
	if name := c.String("token-env-var"); name != "" {
		if key, ok := c.Host.Lookup(name); ok && key != "" {
			return strings.TrimSpace(key), name, nil
		}
		return "", "", p.noKey(account).Because(fault.New(fault.ArgError, "the variable %s is not set", name))
	}
	if key, err = c.Secret("key"); err != nil || key != "" {
		return strings.TrimSpace(key), "the file or variable", err
	}
	key, asked, err := c.Ask(ctx, "Key for "+account+" (it is not shown): ")
	if err != nil || asked {
		return strings.TrimSpace(key), "what was typed", err
	}
	return "", "", p.noKey(account)
}

// noKey returns the fault that there is no key, with the ways to give one.
func (p commands) noKey(account string) *fault.Fault {
	name := strings.ToUpper(strings.ReplaceAll(account, "-", "_")) + "_API_KEY"
	for _, api := range p.APIs {
		if api.Name == account {
			name = api.Keys[len(api.Keys)-1].Variable
		}
	}
	f := fault.New(fault.AuthRequired, "there is no key for %s, and nobody to ask for it", account).
		With("auth_methods", []authMethod{
			{"env_var", name, "omniagent login " + account + " --token-env-var " + name},
			{"file", "key-from-file", "omniagent login " + account + " --key-from-file FILE"},
			{"prompt", "terminal", "omniagent login " + account + ", on a terminal"},
		}).Hint("put the key into %s; then: omniagent login %s --token-env-var %s", name, account, name)
	f.Sort = fault.Precondition // decision 0026: AUTH_REQUIRED exits with 8 everywhere else
	return f
}

type logoutData struct {
	Account string `json:"account"`
	Status  string `json:"status" enum:"deleted,not_found"`
}

func (p commands) runLogout(ctx context.Context, c *contract.Call) (contract.Result, error) {
	account, err := p.accountOf(c)
	if err != nil {
		return contract.Result{}, err
	}
	store := stores.Keys(c)
	data, effect := logoutData{account, "deleted"}, contract.Deleted
	if c.DryRun() {
		if !store.Has(account) {
			data.Status, effect = "not_found", contract.Noop
		}
		return contract.Result{Data: data, Effect: effect, Target: map[string]any{"account": account}}, nil
	}
	from, err := store.Remove(ctx, account)
	if err != nil {
		return contract.Result{}, err
	}
	if from == "" {
		data.Status, effect = "not_found", contract.Noop
	}
	return contract.Result{Data: data, Effect: effect}, nil
}
