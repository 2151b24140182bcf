package policy

import (
	"strconv"
	"strings"

	"omniagent/internal/walls/sandbox"
)

// mostSettings limits the settings of git that are read from the environment.
const mostSettings = 1000

// gitSettings returns the settings of git in the environment: those of GIT_CONFIG_COUNT, and those that git -c hands to
// the programs that it starts. lookup reads a variable; nil: none is set.
func gitSettings(lookup func(name string) (string, bool)) (all []sandbox.GitSetting) {
	variable := Wanted{Lookup: lookup}.variable
	count, _ := strconv.Atoi(strings.TrimSpace(variable("GIT_CONFIG_COUNT")))
	for i := range min(count, mostSettings) {
		n := strconv.Itoa(i)
		key, value := variable("GIT_CONFIG_KEY_"+n), variable("GIT_CONFIG_VALUE_"+n)
		all = append(all, sandbox.GitSetting{Key: key, Value: value})
	}
	return append(all, gitParameters(variable("GIT_CONFIG_PARAMETERS"))...)
}

// gitParameters returns the settings in a text of words that are quoted as for a shell: 'key'='value', or 'key=value'
// as older versions of git have it.
func gitParameters(text string) (all []sandbox.GitSetting) {
	var word strings.Builder
	equals := -1 // where the first = between quotes is
	end := func() {
		key, value, _ := strings.Cut(word.String(), "=")
		if equals >= 0 {
			key, value = word.String()[:equals], word.String()[equals+1:]
		}
		if key != "" && len(all) < mostSettings {
			all = append(all, sandbox.GitSetting{Key: key, Value: value})
		}
		word.Reset()
		equals = -1
	}
	quoted, escaped := false, false
	for i := range len(text) {
		switch b := text[i]; {
		case escaped:
			escaped = false
			word.WriteByte(b)
		case b == '\'':
			quoted = !quoted
		case b == '\\' && !quoted:
			escaped = true
		case !quoted && (b == ' ' || b == '\t' || b == '\n'):
			end()
		default:
			if b == '=' && !quoted && equals < 0 {
				equals = word.Len()
			}
			word.WriteByte(b)
		}
	}
	end()
	return all
}
