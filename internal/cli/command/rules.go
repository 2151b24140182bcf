package command

import (
	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
	"omniagent/internal/walls/guard"
)

// ruleList is a setting with rules.
type ruleList struct {
	key  string
	word guard.Decision
}

func ruleKeys() []ruleList {
	return []ruleList{{"native.deny", guard.Deny}, {"native.ask", guard.Ask}, {"native.allow", guard.Allow}}
}

// rulesOf returns the user's rules of all layers: a higher layer does not remove those of a lower one. problems are the
// rules that do not parse; each is replaced by a stricter reading.
func rulesOf(c *contract.Call, known guard.Known) (rules guard.Rules, problems []error) {
	for _, list := range ruleKeys() {
		for _, value := range c.Config.Everywhere(list.key) {
			written, _ := value.Raw.([]string)
			for _, text := range written {
				rule, err := known.Rule(list.word, text, value.Source)
				if err == nil {
					rules = append(rules, rule)
					continue
				}
				problems = append(problems, fault.Of(err).With("key", list.key))
				if stricter, ok := known.Stricter(list.word, text, value.Source); ok {
					rules = append(rules, stricter)
				}
			}
		}
	}
	return rules, problems
}
