package chat

import (
	"fmt"
)

// String returns what was spent, in one line.
func (s Spent) String() string {
	if s.Turns == 0 {
		return "Nothing has been spent."
	}
	turns := "1 turn"
	if s.Turns > 1 {
		turns = fmt.Sprintf("%d turns", s.Turns)
	}
	line := fmt.Sprintf("%s, %d tokens in", turns, s.Input)
	if s.Cached > 0 {
		line += fmt.Sprintf(" (%d cached)", s.Cached)
	}
	line += fmt.Sprintf(", %d out", s.Output)
	if s.CostUSD != nil {
		line += fmt.Sprintf(", %.4f USD", *s.CostUSD)
	}
	if s.Estimated {
		line += ", estimated"
	}
	return line
}

const goOnWith = "Go on with: "

// farewell returns lines with what the conversation has cost, and how to continue it.
func (c *Chat) farewell() []string {
	if c.messages == 0 {
		return nil
	}
	var lines []string
	if c.spent.Turns > 0 {
		lines = append(lines, c.spent.String()+".")
	}
	if c.World.Kept != "" {
		lines = append(lines, c.World.Kept)
	}
	if c.World.Command == nil {
		return lines
	}
	if again := c.World.Command(c.Conversation().ID()); again != "" {
		lines = append(lines, goOnWith+again)
	}
	return lines
}
