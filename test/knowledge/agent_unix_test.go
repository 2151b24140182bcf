//go:build unix

package knowledge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
	"omniagent/internal/core/event"
	"omniagent/internal/kit/setting"
)

// sixth is all that is known of the sixth agent.
type sixth struct{ cli.Program }

func newSixth() agent.Driver {
	return sixth{cli.Program{
		ID: "sixth",
		About: agent.About{
			Title: "The Sixth", Binary: "sixth", Package: "sixth-agent", InstallCommand: "npm install -g sixth-agent",
			Login: "sixth login", Settings: []string{".sixth"}, Private: []string{".config/sixth"},
			RepoEffect: func(file string) string {
				if agent.Beneath(file, ".sixth") {
					return "what the sixth does at its start"
				}
				return ""
			},
		},
		OneShot: []string{"run"},
		Table: func(string) agent.Matrix {
			yes := agent.Cell{Level: agent.Full}
			return agent.Matrix{Measured: "1.0.0", Rows: []agent.Row{
				agent.Both(agent.Approval, string(setting.Prompt), yes),
				agent.Both(agent.Approval, string(setting.Default), yes),
				agent.Both(agent.Output, string(setting.StreamJSON), yes),
			}}
		},
	}}
}

func (d sixth) Decode(o setting.Output) agent.Decoder {
	if o != setting.StreamJSON {
		return nil
	}
	return &sixthLines{}
}

func (d sixth) Mind(_ context.Context, s agent.Spec, sv agent.Services) (agent.Mind, error) {
	return cli.TurnMind(d, s, sv)
}

// sixthLines reads what it prints: one text.
type sixthLines struct {
	data []byte
}

func (l *sixthLines) Feed(data []byte) []event.Event {
	l.data = append(l.data, data...)
	return nil
}

func (l *sixthLines) End(x agent.Exit) []event.Event {
	var said struct{ Says string }
	if json.Unmarshal(l.data, &said) != nil || x.Code != 0 {
		return []event.Event{{Kind: event.Ended, End: &event.End{Reason: event.FailedTurn}}}
	}
	return []event.Event{
		{Kind: event.Started, Session: "sixth-1"},
		{Kind: event.TurnBegan},
		{Kind: event.Text, Text: said.Says},
		{Kind: event.Ended, End: &event.End{OK: true, Text: said.Says, Reason: event.Success}},
	}
}

// sixthMain is the agent itself.
func sixthMain() int {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println("sixth 1.2.3")
		return 0
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	line, _ := json.Marshal(map[string]string{"says": "sixth heard: " + strings.TrimSpace(string(prompt))})
	fmt.Println(string(line))
	return 0
}
