package redact

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

// Args masks a command line for a record of it: the value of a flag with a secret name in both forms, NAME=value, the
// value of `set NAME value`, the password of `-u user:password`, and secrets anywhere. The result is a new list.
func Args(argv []string) []string {
	out := make([]string, len(argv))
	for i, arg := range argv {
		switch {
		case i > 0 && secretFlag(argv[i-1]) && !isFlag(arg),
			i > 1 && argv[i-2] == "set" && Name(argv[i-1]):
			out[i] = masked(arg)
		case i > 0 && slices.Contains(userFlags(), argv[i-1]):
			out[i] = login(arg)
		case joinedLogin(arg) != "":
			out[i] = joinedLogin(arg)
		default:
			out[i] = assigned(arg)
		}
	}
	return out
}

// userFlags are the flags with which curl and its like take user:password. Other programs have them for a user and a
// group, so numbers stay.
func userFlags() []string { return []string{"-u", "--user", "-U", "--proxy-user"} }

// joinedLogin masks -uuser:password and --user=user:password. It returns "" for any other argument.
func joinedLogin(arg string) string {
	for _, flag := range userFlags() {
		if strings.HasPrefix(flag, "--") {
			flag += "="
		}
		if value, found := strings.CutPrefix(arg, flag); found && login(value) != value {
			return flag + login(value)
		}
	}
	return ""
}

// login masks the password of user:password.
func login(value string) string {
	user, password, found := strings.Cut(value, ":")
	numbers := user != "" && port(user) && port(password)
	if !found || password == "" || numbers || plain(password) || strings.HasPrefix(password, "//") {
		return String(value)
	}
	return user + ":" + Mask
}

// Env masks a list of NAME=value.
func Env(list []string) []string {
	out := make([]string, len(list))
	for i, entry := range list {
		out[i] = assigned(entry)
	}
	return out
}

// assigned masks the whole value of NAME=value and --name=value: unlike in a text there is no doubt where it ends.
func assigned(arg string) string {
	name, value, ok := strings.Cut(arg, "=")
	if !ok || strings.ContainsAny(name, " \t\n:/?&\"'{") || !Name(strings.TrimLeft(name, "-")) {
		return String(arg)
	}
	return name + "=" + masked(value)
}

func masked(value string) string {
	if value == "" || plain(value) {
		return value
	}
	return Mask
}

func secretFlag(arg string) bool {
	name := strings.TrimLeft(arg, "-")
	return name != arg && !strings.Contains(name, "=") && Name(name)
}

// isFlag: --name or -x. A longer word with one dash may be a secret: one in 64 random ones begins so.
func isFlag(arg string) bool {
	return strings.HasPrefix(arg, "--") || len(arg) == 2 && arg[0] == '-'
}

// Value masks all secrets in a tree of maps, slices and strings, by their names and by their format. It returns a copy.
// Other values (structs, pointers) are converted by encoding/json; what it cannot encode is masked. Booleans, nil and
// empty strings are never secret.
func Value(v any) any { return walk(v, false, 0) }

// maxDepth ends a walk through a value that contains itself.
const maxDepth = 200

func walk(v any, secret bool, depth int) any {
	if depth > maxDepth {
		return Mask
	}
	switch v := v.(type) {
	case nil, bool:
		return v
	case string:
		return text(v, secret)
	case int, int64, float64, json.Number:
		if secret {
			return Mask
		}
		return v
	case error:
		return text(v.Error(), secret)
	case map[string]any:
		if v == nil {
			return v
		}
		out := make(map[string]any, len(v))
		for name, inner := range v {
			out[String(name)] = walk(inner, secret || Name(name), depth+1)
		}
		return out
	case []any:
		if v == nil {
			return v
		}
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = walk(inner, secret, depth+1)
		}
		return out
	case map[string]string:
		out := make(map[string]string, len(v))
		for name, inner := range v {
			out[String(name)] = text(inner, secret || Name(name))
		}
		return out
	case []string:
		out := make([]string, len(v))
		for i, inner := range v {
			out[i] = text(inner, secret)
		}
		return out
	}
	return other(v, secret, depth)
}

func text(s string, secret bool) string {
	if secret {
		return masked(s)
	}
	return String(s)
}

// other handles what is neither text nor tree: plain numbers stay, the rest goes through its JSON.
func other(v any, secret bool, depth int) any {
	switch reflect.TypeOf(v).Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		if _, marshals := v.(json.Marshaler); !marshals && !secret {
			return v
		}
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		return Mask
	}
	var tree any
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return Mask
	}
	return walk(tree, secret, depth+1)
}
