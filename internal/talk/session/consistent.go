package session

import (
	"omniagent/internal/llm/model"
)

// interrupted is the result of a call whose own result was never written: the tool may have run or not.
const interrupted = "interrupted: the result of this call was lost, and it may or may not have run"

// consistent returns a conversation that every API accepts: the sides alternate, each call has one result at the
// beginning of the next message, and there is no result without its call. The blocks are shared with the input.
func consistent(messages []model.Message) []model.Message {
	var whole []model.Message
	var open []model.Block // calls of the last message
	for _, m := range model.Joined(messages) {
		if m.Role == model.User {
			m.Blocks = answered(open, m.Blocks)
		}
		whole = model.Join(whole, m) // what stood between two answers may have been only results without calls
		open = openCalls(whole)
	}
	if len(open) > 0 {
		whole = append(whole, model.Message{Role: model.User, Blocks: answered(open, nil)})
	}
	return whole
}

func openCalls(messages []model.Message) []model.Block {
	var open []model.Block
	if n := len(messages); n > 0 && messages[n-1].Role == model.Assistant {
		for _, b := range messages[n-1].Blocks {
			if b.Kind == model.Call {
				open = append(open, b)
			}
		}
	}
	return open
}

// answered returns the blocks of a user's message with one result for each open call first, and no other results.
func answered(open, blocks []model.Block) []model.Block {
	if inOrder(open, blocks) {
		return blocks
	}
	results := map[string]model.Block{}
	var rest, all []model.Block
	for _, b := range blocks {
		if b.Kind != model.Result {
			rest = append(rest, b)
		} else if _, twice := results[b.ID]; !twice {
			results[b.ID] = b
		}
	}
	for _, call := range open {
		b, ok := results[call.ID]
		if !ok {
			b = model.Block{Kind: model.Result, ID: call.ID, Name: call.Name, Text: interrupted, Failed: true}
		}
		all = append(all, b)
	}
	return append(all, rest...)
}

// inOrder reports whether there is nothing to repair.
func inOrder(open, blocks []model.Block) bool {
	for i, b := range blocks {
		if (b.Kind == model.Result) != (i < len(open)) || i < len(open) && b.ID != open[i].ID {
			return false
		}
	}
	return len(blocks) >= len(open)
}
