// Package run carries out a task unattended, and keeps a reliable record of it.
//
//	queued ─▶ starting ─▶ running ─▶ succeeded, failed, blocked, stalled, timed_out, cancelled
//	              ▲          │
//	              │ answer   │ a question that only a person can answer
//	              └── needs_input
//
//	the owner dies while a turn runs ─▶ unknown_outcome
//
// A run is a task, the conversations about it, and one end. The messages are in the journals of the conversations
// (package session); the record of the run has everything else. The process that carries out a run is its owner. It
// holds a lock, so there is never more than one, and readers notice at once if the owner has died.
//
// A run has exactly one end, which never changes. Every wait has a time limit. A question is never answered on a
// person's behalf, and outlives the process that asked. An outcome that was not observed is called unknown, and the
// task is not repeated automatically. A verdict is based on records and protocols, never on the wording of a text.
//
// Agents are only started through the given conversation.Opener, which decides what may be started.
package run
