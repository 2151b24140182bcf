package tool

import (
	"bytes"
	"context"
	"slices"
	"strings"

	"omniagent/internal/core/event"
	"omniagent/internal/kit/text"
)

// Skill is a set of instructions by the user or a trusted project.
type Skill struct {
	Name, Description string
	Dir               string // the directory of its other files
	Text              string // its instructions
}

// UseSkill returns a tool that reads the instructions of a skill.
func UseSkill(env *Env) Tool {
	s := specOf(event.ToolSpec{Name: "Skill", Kind: event.Other})
	list := "One of these:"
	for _, skill := range env.Skills {
		list += "\n- " + skill.Name + ": " + skill.Description
	}
	if known, err := text.JSON(list); err == nil {
		s.Input = bytes.Replace(s.Input, []byte(`"SKILLS"`), known, 1)
	}
	return s.plan(func(in *input) (Action, error) {
		name, args := strings.TrimPrefix(in.text("skill", true), "/"), in.text("args", false)
		i := slices.IndexFunc(env.Skills, func(s Skill) bool { return s.Name == name })
		if i < 0 && len(in.problems) == 0 {
			var names []string
			for _, skill := range env.Skills {
				names = append(names, skill.Name)
			}
			in.problem("there is no skill %q: there are %s", clip(name), strings.Join(names, ", "))
		}
		return Action{
			Title: "Read the skill " + text.Name(clip(name)),
			Run: func(context.Context) Result {
				skill := env.Skills[i]
				said := "Base directory of this skill: " + skill.Dir + "\n\n" + skill.Text
				if args != "" {
					said += "\n\nARGUMENTS: " + args
				}
				return Result{Text: said}
			},
		}, nil
	})
}
