package contract

import (
	"slices"
	"strings"
)

// Many commands have some flags and exit codes in the same form, such as those that start an agent. The manifest has
// these once for each group of such commands, beside the entries, whose schema has no place for a group.

// partsAlike are the members of an entry that groups may have instead.
func partsAlike() []string { return []string{"flags", "exit_codes"} }

// takeAlike takes the flags and exit codes that several entries have in the same form out of them, and returns them by
// group. A group names its commands. Success and required flags stay: an entry alone is enough for the shortest call.
func takeAlike(entries object) []any {
	users := map[string][]string{} // the commands with the same flag or exit code
	for _, entry := range entries {
		for _, part := range partsAlike() {
			for _, m := range entry.part(part) {
				form := part + string(appendJSON(nil, object{m}))
				users[form] = append(users[form], entry.name)
			}
		}
	}
	groups := object{} // by the names of the commands
	for i, entry := range entries {
		for _, part := range partsAlike() {
			own := object{}
			for _, m := range entry.part(part) {
				all := users[part+string(appendJSON(nil, object{m}))]
				if len(all) == 1 || part == "exit_codes" && m.name == "0" || m.required() {
					own = append(own, m)
				} else if all[0] == entry.name {
					groups = addAlike(groups, all, part, m)
				}
			}
			entries[i].value = entry.value.(object).set(part, own)
		}
	}
	list := []any{}
	for _, group := range groups {
		list = append(list, group.value)
	}
	return list
}

// addAlike adds a flag or an exit code to the group of some commands.
func addAlike(groups object, commands []string, part string, m member) object {
	name := strings.Join(commands, " ")
	at := slices.IndexFunc(groups, func(g member) bool { return g.name == name })
	if at < 0 {
		at = len(groups)
		groups = append(groups, member{name, object{{"commands", names(commands)}}})
	}
	groups[at].value = groups[at].value.(object).set(part, append(groups[at].part(part), m))
	return groups
}

// part returns a member of an entry that has members itself, or nil.
func (m member) part(name string) object {
	value, _ := m.value.(object).get(name)
	part, _ := value.(object)
	return part
}

// required reports whether m is a flag without which no call is possible.
func (m member) required() bool {
	required, _ := m.value.(object).get("required")
	return required == true
}
