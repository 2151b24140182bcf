package enclosure

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"omniagent/internal/guard"
	"omniagent/internal/lines"
)

// Credentials returns where credentials are: in the home directory of the environment, and in that of the account,
// because HOME may be set to another one.
func Credentials(agents guard.Agents, home string) []string {
	all := agents.Credentials(home)
	if account := accountHome("/etc/passwd", os.Getuid()); account != "" && account != filepath.Clean(home) {
		all = append(all, agents.Credentials(account)...)
	}
	return all
}

// accountHome returns the home directory of a user in the passwd file, or "". It does not find a user that only a
// directory service knows.
func accountHome(list string, uid int) string {
	f, err := os.Open(list)
	if err != nil {
		return ""
	}
	defer f.Close()
	for in := lines.NewReader(f, 64<<10); in.Next(); {
		fields := strings.Split(string(in.Text), ":")
		if len(fields) < 7 || fields[2] != strconv.Itoa(uid) {
			continue
		}
		if home := filepath.Clean(fields[5]); filepath.IsAbs(home) && home != "/" {
			return home
		}
		return ""
	}
	return ""
}
