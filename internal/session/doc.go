// Package session keeps conversations on disk: for each a journal, which only grows, and a projection for other
// programs.
//
// It promises that a record survives kill -9 of this process once Append returns; that any number of readers get the
// same records from any number on, and a slow one delays no writer and takes no memory; that a journal whose writer was
// killed at any moment loads with at most the last record missing, and with an adopted history completely or not at
// all; that a session has one writer, and a second one is told the process of the first; that the messages for the
// model are consistent, with a result for each call; and that a damaged file affects only itself. Files are private to
// the user, and links are not followed.
//
// It never changes or removes what was recorded: going back is a new branch of the tree, compacting is a record that
// says from where on messages count. It runs nothing, does not know what a model costs, and does not silently continue
// a session under another provider, because thinking is useless to another model (see CheckProvider and Adopt).
//
// # The journal
//
// <store>/<id>.jsonl has a line for each record, in one fixed order of members, so that a reader can go over a line
// without decoding it:
//
//	{"n":7,"p":6,"k":"message","t":"2026-01-31T12:00:00.000Z","c":"29b3d8c5","d":{…}}
//
// n is the record's number: 1, 2, 3 and so on; p is the number of the one that it follows, 0 for the first; k is its
// kind; t is when it was written; c is the CRC-32C of what stands before it and of the data d, in hexadecimal digits.
// Records of version 0.1 have no c.
//
// Messages, ends, changes and their like follow one another: the last of them is where the conversation stands, and the
// way from there back to the first is what it consists of. Events (Logged) lie between them. p of an event is the
// record behind which it happened, and no record follows it.
//
// Data of more than 256 KiB lies in <store>/<id>.blobs/<SHA-256>, and d says {"blob":…,"size":…}. That file is on the
// disk before the line is written. A journal without a name (Unlinked) has no such files.
//
// A line that is not what was written is divided: records in it whose checksum holds are used, the rest is Damaged,
// with its offset. A number that was there before is damage as well, and so is a gap. When a journal is opened to be
// written, a last line without a newline is cut off if it begins as the next record would, or holds nothing but zeros;
// anything else gets a newline and stays. To open a journal costs little because of an event no more than the head is
// looked at; who reads it sees whether its checksum holds.
//
// Kinds that this version does not know are kept: readers get them as Unknown, forks carry them along. A journal that
// begins with a newer version is only read.
//
// # The projection
//
// <store>/<id>.json is an object with id, provider, model, cwd, created, updated, history, usage and metadata. It is
// written whole and put in place by a rename, at the end of each turn and when the session is closed. It loses:
//
//   - everything that a compaction has put aside: history is what the model sees now, with the summary as its first
//     message;
//   - branches that were left, and the records that are no messages: ends of turns, their errors and denials, todos,
//     changes, times;
//   - what a model thought, signatures and everything else that only its own API understands;
//   - images and files: a line in brackets stands in their place;
//   - whether a tool's result was a failure; the arguments of a call that were no JSON object;
//   - which messages came as one: each result of a tool is an entry of its own, what else the user said there follows
//     as another;
//   - the sorts of input tokens (cached or not are one sum), the tokens of thinking, and which figures were estimated;
//   - where the session was forked from, and its permission mode.
package session
