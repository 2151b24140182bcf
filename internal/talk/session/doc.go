// Package session keeps conversations on disk. Each has a journal, which only grows, and a projection for other
// programs.
//
// Once Append returns, a record survives kill -9 of this process. Any number of readers get the same records, starting
// at any record; a slow reader does not delay the writer and takes no memory. If the writer is killed at any moment, at
// most the last record is missing, and an adopted history is complete or ignored. A session has one writer; a second
// one gets an error that names the process of the first. The messages for the model are consistent, with a result for
// each call. A damaged file affects only itself. Files are private to the user, and links are not followed.
//
// Records are never changed or removed: going back is a new branch of the tree, and a compaction is a record that says
// which messages still count. The package runs nothing, does not know prices, and does not silently continue a session
// with another provider, because thinking is useless to another model (see CheckProvider and Adopt).
//
// # The journal
//
// <store>/<id>.jsonl has a line for each record. The order of its members is fixed, so that a reader can skip a line
// without decoding it:
//
//	{"n":7,"p":6,"k":"message","t":"2026-01-31T12:00:00.000Z","c":"29b3d8c5","d":{…}}
//
// n is the record's number: 1, 2, 3 and so on; p is the number of its parent, 0 for the first; k is its kind; t is the
// time of writing; c is the CRC-32C of everything before it and of the data d, in hexadecimal digits. Records of
// version 0.1 have no c.
//
// Messages, ends, changes and similar records form a tree: the conversation is the path from the first record to the
// current one. Events (Logged) are between them. The parent of an event is the record after which it happened; an event
// is never a parent.
//
// Data of more than 256 KiB is in <store>/<id>.blobs/<SHA-256>, and d is {"blob":…,"size":…}. That file is on the disk
// before the line is written. A journal without a name (Unlinked) has no such files.
//
// A damaged line is divided: records in it with a valid checksum are used, and the rest is Damaged, with its offset. A
// repeated number and a gap are damage too. When a journal is opened for writing, a last line without a newline is cut
// off if it begins like the next record, or has only zeros; anything else gets a newline and stays. Opening a journal
// is cheap, because only the heads of events are read; readers verify their checksums.
//
// Records of unknown kinds are kept: readers get them as Unknown, and forks copy them. A journal of a newer version is
// read-only.
//
// # The projection
//
// <store>/<id>.json is an object with id, provider, model, cwd, created, updated, history, usage and metadata. It is
// replaced atomically, at the end of each turn and when the session is closed. It does not contain:
//
//   - everything that a compaction has put aside: history is what the model sees now, with the summary as its first
//     message;
//   - abandoned branches, and the records that are not messages: ends of turns, their errors and denials, todos,
//     changes, times;
//   - thinking, signatures and everything else that only the model's own API understands;
//   - images and files: a line in brackets stands in their place;
//   - whether a tool's result was a failure; the arguments of a call that were not a JSON object;
//   - which entries were one message: each result of a tool is an entry of its own, and the rest of the message
//     follows as another;
//   - the sorts of input tokens (cached or not are one sum), the tokens of thinking, and which figures were estimated;
//   - where the session was forked from, and its permission mode.
package session
