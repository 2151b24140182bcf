// Package session keeps conversations on disk: one journal for each, which only grows, and beside it a projection that others can read.
//
// It promises that a record is on its way to the disk when Append returns, and lost to kill -9 of this process no more; that a journal
// whose writer was killed at any moment loads with at most the last record missing, and with an adopted history whole or not at all; that a
// session has one writer, and whoever comes second is told which process that is; that what the model gets to see is consistent, with a
// result for each call; and that one damaged file stands in the way of nothing but itself. Files are open to the user alone, and links are
// not followed.
//
// It refuses to change or to forget what was recorded: going back is a new branch of the tree, shortening is a record that says from where
// on messages count. It refuses to run anything, to know what a model costs, and to go on with a session under another provider as if
// nothing were: what a model had thought stays with the one that thought it (see CheckProvider and Adopt).
//
// # The journal
//
// <store>/<id>.jsonl has a line for each record, in one fixed order of members, so that a reader can go over a line without decoding it:
//
//	{"n":7,"p":6,"k":"message","t":"2026-01-31T12:00:00.000Z","d":{…}}
//
// n is the record's number and grows; p is the number of the one that it follows, 0 for the first; k is its kind; t is when it was
// written. The last line is where the conversation stands, and the way from there back to the first is what it consists of. Lines that
// are no records are passed over and counted. Kinds that this version does not know are passed over too.
//
// # The projection
//
// <store>/<id>.json is an object with id, provider, model, cwd, created, updated, history, usage and metadata. It is written whole and put
// in place by a rename, at the end of each turn and when the session is closed. It loses:
//
//   - everything that a compaction has put aside: history is what the model sees now, with the summary as its first message;
//   - branches that were left, and the records that are no messages: ends of turns, their errors and denials, todos, changes, times;
//   - what a model thought, signatures and everything else that only its own API understands;
//   - images and files: a line in brackets stands in their place;
//   - whether a tool's result was a failure; the arguments of a call that were no JSON object;
//   - which messages came as one: each result of a tool is an entry of its own, what else the user said there follows as another;
//   - the sorts of input tokens (cached or not are one sum), the tokens of thinking, and which figures were estimated;
//   - where the session was forked from, and its permission mode.
package session
