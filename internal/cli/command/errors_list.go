package command

import (
	"context"
	"slices"
	"strings"

	"omniagent/internal/cli/contract"
	"omniagent/internal/kit/fault"
)

type errorRow struct {
	Code      string `json:"code"`
	Kind      string `json:"kind" doc:"decides the exit code"`
	Exit      int    `json:"exit_code"`
	Retryable bool   `json:"retryable"`
	Summary   string `json:"summary"`
	NextStep  string `json:"next_step"`
	Docs      string `json:"docs_url"`
}

type errorsData struct {
	Errors contract.Rows[errorRow] `json:"errors"`
}

func errorsList() *contract.Command {
	return &contract.Command{
		Path: "errors list", Summary: "list every error code: what it means and what to do", Class: contract.Envelope,
		Danger: contract.Safe, Version: "1.0.0",
		NoConfig: true, Scopes: []string{}, Output: contract.TypeOf[errorsData](),
		List: &contract.List{
			Key: "errors", ID: "code", Order: "code", Columns: []string{"code", "exit_code", "summary"},
		},
		Params: []contract.Param{{Name: "code", Kind: contract.ID, Position: 1, Stdin: true, Help: "only this code"}},
		Exits: []contract.Exit{
			{Code: contract.Success, When: "the codes are listed"},
			{Code: contract.NotFound, When: "there is no such code"},
		},
		Examples: []contract.Example{
			{Description: "All codes", Command: "omniagent errors list --limit 0"},
			{Description: "One code", Command: "omniagent errors list LOCK_HELD"},
		},
		Run: func(_ context.Context, c *contract.Call) (contract.Result, error) {
			var rows []errorRow
			for _, e := range fault.Catalogue() {
				if c.Given("code") && string(e.Code) != c.String("code") {
					continue
				}
				rows = append(rows, errorRow{
					string(e.Code), string(e.Kind), contract.ExitFor(e.Kind), e.Retryable,
					e.Summary, e.NextStep, contract.DocsFor(e.Code),
				})
			}
			if len(rows) == 0 {
				return contract.Result{}, fault.New(fault.NotFoundCode, "there is no error code %s", c.String("code")).
					Hint("omniagent errors list --limit 0")
			}
			slices.SortFunc(rows, func(a, b errorRow) int { return strings.Compare(a.Code, b.Code) })
			return contract.Result{Data: errorsData{contract.RowsOf(rows)}}, nil
		},
	}
}
