// Package run carries a task to its end with nobody watching, and keeps a true record of it.
//
//	queued ─▶ starting ─▶ running ─▶ succeeded, failed, blocked, stalled, timed_out, cancelled
//	              ▲          │
//	              │ answer   │ a question that only a person can answer
//	              └── needs_input
//
//	the owner dies while a turn runs ─▶ unknown_outcome
//
// A run is a task, the conversations that were held for it, and one end. What was said is in the journals of those
// conversations (package session); the record of the run has everything else. The process that carries a run out is its
// owner: it holds a lock, so there is never more than one, and a reader sees at once that an owner has died.
//
// It promises that a run has exactly one end, which nothing changes afterwards; that it never waits without a clock;
// that a question is never answered on a person's behalf, and outlives the process that asked; that an outcome which
// nobody saw is called unknown, and the task is not begun again by itself; and that a verdict is drawn from records and
// protocols, never from a phrase in prose.
//
// It starts agents only through the conversation.Opener that it is given, which decides what may be started.
package run
