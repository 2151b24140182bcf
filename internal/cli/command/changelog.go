package command

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"omniagent"
	"omniagent/internal/cli/contract"
	"omniagent/internal/cli/parts"
	"omniagent/internal/kit/fault"
)

type changelogEntry struct {
	Version  string   `json:"version"`
	Date     *string  `json:"date" doc:"null: not released yet"`
	Breaking []string `json:"breaking"`
	Added    []string `json:"added"`
	Changed  []string `json:"changed"`
	Removed  []string `json:"removed"`
	Fixed    []string `json:"fixed"`
}

type changelogData struct {
	Entries contract.Rows[changelogEntry] `json:"entries"`
}

// ForPeople makes the lines fit the screen.
func (changelogData) ForPeople() {}

// PlainText returns the changes of each version as lists.
func (d changelogData) PlainText() string {
	var b strings.Builder
	for e := range d.Entries.Seq {
		title := e.Version
		if e.Date != nil {
			title += ", " + *e.Date
		}
		fmt.Fprintln(&b, title)
		for _, name := range []string{"Breaking", "Added", "Changed", "Removed", "Fixed"} {
			lines := *e.section(name)
			if len(lines) > 0 {
				fmt.Fprintf(&b, "\n%s\n", name)
			}
			for _, line := range lines {
				fmt.Fprintf(&b, "  -  %s\n", line)
			}
		}
	}
	return b.String()
}

const versionPattern = `^[0-9]+\.[0-9]+\.[0-9]+$`

func changelog() *contract.Command {
	return &contract.Command{
		Path: "changelog", Summary: "show what changed from version to version", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0",
		NoConfig: true, Scopes: []string{}, Output: contract.TypeOf[changelogData](),
		List: &contract.List{Key: "entries", ID: "version", Order: "given"},
		Params: []contract.Param{{
			Name: "since", Kind: contract.ID, Pattern: versionPattern, Help: "only versions after this one",
		}},
		Exits: []contract.Exit{{Code: contract.Success, When: "the entries are listed, newest first"}},
		Examples: []contract.Example{
			{Description: "All versions", Command: "omniagent changelog"},
			{Description: "What is new since 0.1.0", Command: "omniagent changelog --since 0.1.0"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			entries, err := parseChangelog(omniagent.Changelog)
			if err != nil {
				return contract.Result{}, err
			}
			var rows []changelogEntry
			for _, e := range entries {
				if !c.Given("since") || parts.NewerVersion(e.Version, c.String("since")) {
					rows = append(rows, e)
				}
			}
			return contract.Result{Data: changelogData{contract.RowsOf(rows)}}, nil
		},
	}
}

// parseChangelog parses headings such as "## 1.2.3 - 2026-01-02" with lists such as "### Added" below. A list item may
// have several lines.
func parseChangelog(text string) ([]changelogEntry, error) {
	heading := regexp.MustCompile(`^## \[?([0-9]+\.[0-9]+\.[0-9]+)\]?(?: - ([0-9]{4}-[0-9]{2}-[0-9]{2}))?`)
	var entries []changelogEntry
	var list *[]string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "## "):
			m := heading.FindStringSubmatch(line)
			if m == nil {
				return nil, fault.New(fault.Internal, "a heading of the changelog is not a version: %q", line)
			}
			e := changelogEntry{Version: m[1]}
			if m[2] != "" {
				e.Date = &m[2]
			}
			entries, list = append(entries, e), nil
		case strings.HasPrefix(line, "### ") && len(entries) > 0:
			list = entries[len(entries)-1].section(strings.TrimPrefix(line, "### "))
		case strings.HasPrefix(line, "- ") && list != nil:
			*list = append(*list, strings.TrimPrefix(line, "- "))
		case strings.HasPrefix(line, "  ") && list != nil && len(*list) > 0:
			(*list)[len(*list)-1] += " " + strings.TrimSpace(line)
		}
	}
	return entries, nil
}

// section returns the list for a heading, or nil if the heading is not known.
func (e *changelogEntry) section(name string) *[]string {
	return map[string]*[]string{
		"Breaking": &e.Breaking, "Added": &e.Added, "Changed": &e.Changed, "Removed": &e.Removed, "Fixed": &e.Fixed,
	}[name]
}
