package parts

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/walls/guard"
)

// RuleList is a setting that has rules, and what they decide.
type RuleList struct {
	Key  string
	Word guard.Decision
}

// RuleKeys returns the settings that have rules.
func RuleKeys() []RuleList {
	return []RuleList{{"native.deny", guard.Deny}, {"native.ask", guard.Ask}, {"native.allow", guard.Allow}}
}

// RulesOf returns the user's rules of all layers: a higher layer does not remove those of a lower one. problems are the
// rules that do not parse; each is replaced by a stricter reading.
func RulesOf(c *contract.Call, known guard.Known) (rules guard.Rules, problems []error) {
	for _, list := range RuleKeys() {
		for _, value := range c.Config.Everywhere(list.Key) {
			written, _ := value.Raw.([]string)
			for _, text := range written {
				rule, err := known.Rule(list.Word, text, value.Source)
				if err == nil {
					rules = append(rules, rule)
					continue
				}
				problems = append(problems, fault.Of(err).With("key", list.Key))
				if stricter, ok := known.Stricter(list.Word, text, value.Source); ok {
					rules = append(rules, stricter)
				}
			}
		}
	}
	return rules, problems
}
