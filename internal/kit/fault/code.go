package fault

import (
	_ "embed" // the table of the codes
	"strings"
)

// Code names one failure for ever: programs branch on it, so a code never changes its meaning. A Code is also an error,
// for errors.Is.
type Code string

func (c Code) Error() string { return string(c) }

// The codes, in the order of `omniagent errors list`.
const (
	Internal             Code = "INTERNAL_ERROR"
	OutputFailed         Code = "OUTPUT_FAILED"
	WarningsAsErrors     Code = "WARNINGS_AS_ERRORS"
	PreflightFailed      Code = "PREFLIGHT_FAILED"
	SceneFailed          Code = "SCENE_FAILED"
	BatchFailed          Code = "BATCH_FAILED"
	CheckFailed          Code = "CHECK_FAILED"
	UndeclaredCapability Code = "UNDECLARED_CAPABILITY"
	DiskFull             Code = "DISK_FULL"
	AuditDamaged         Code = "AUDIT_DAMAGED"

	Invalid               Code = "VALIDATION_ERROR"
	ArgError              Code = "ARG_ERROR"
	MissingArgument       Code = "MISSING_ARGUMENT"
	UnknownCommand        Code = "UNKNOWN_COMMAND"
	UnknownFlag           Code = "UNKNOWN_FLAG"
	InvalidAgentInput     Code = "INVALID_AGENT_INPUT"
	InvalidJSON           Code = "INVALID_JSON"
	InvalidXNL            Code = "INVALID_XNL"
	InvalidCursor         Code = "INVALID_CURSOR"
	SecretOnCommandLine   Code = "SECRET_ON_COMMAND_LINE"
	StdinTooLarge         Code = "STDIN_TOO_LARGE"
	StdinEmpty            Code = "EMPTY_STDIN"
	FieldTooLarge         Code = "FIELD_TOO_LARGE"
	ConfirmationRequired  Code = "CONFIRMATION_REQUIRED"
	ConfigInvalid         Code = "CONFIG_INVALID"
	ConfigKeyUnknown      Code = "CONFIG_KEY_UNKNOWN"
	DispatchParse         Code = "DISPATCH_PARSE_ERROR"
	SchemaVersion         Code = "SCHEMA_VERSION_UNSUPPORTED"
	StreamingNotSupported Code = "STREAMING_NOT_SUPPORTED"
	ShellString           Code = "SHELL_STRING_PROHIBITED"
	Unsupported           Code = "UNSUPPORTED"

	PartialFailure Code = "PARTIAL_FAILURE"

	StdinRequired  Code = "STDIN_REQUIRED"
	InputRequired  Code = "INPUT_REQUIRED"
	ReplProhibited Code = "REPL_MODE_PROHIBITED"
	LockHeld       Code = "LOCK_HELD"
	SymlinkLoop    Code = "SYMLINK_LOOP"
	DepthExceeded  Code = "DEPTH_EXCEEDED"
	NoHome         Code = "NO_HOME"
	Unsafe         Code = "UNSAFE_PATH"

	FileMissing   Code = "FILE_NOT_FOUND"
	NotFoundCode  Code = "NOT_FOUND"
	NotInstalled  Code = "NOT_INSTALLED"
	AlreadyExists Code = "ALREADY_EXISTS"

	ConcurrentModification Code = "CONCURRENT_MODIFICATION"
	Conflicting            Code = "CONFLICT"
	IdempotencyKeyReused   Code = "IDEMPOTENCY_KEY_REUSED"

	PermissionDenied Code = "PERMISSION_DENIED"
	NotAllowed       Code = "AGENT_NOT_ALLOWED"

	AuthRequired       Code = "AUTH_REQUIRED"
	CredentialsExpired Code = "CREDENTIALS_EXPIRED"
	MissingScopes      Code = "MISSING_SCOPES"

	TimedOut        Code = "TIMEOUT"
	Stalled         Code = "STALLED"
	QuotaExhausted  Code = "QUOTA_EXHAUSTED"
	TooManyRequests Code = "RATE_LIMITED"
	ServiceDown     Code = "UNAVAILABLE"
	CommandMoved    Code = "COMMAND_MOVED"
	Interrupted     Code = "CANCELLED"

	Blocked         Code = "BLOCKED_BY_POLICY"
	RunNotOver      Code = "NOT_OVER"
	RunNotSucceeded Code = "NOT_DONE"
	NeedsInput      Code = "NEEDS_INPUT"
	Repeated        Code = "QUESTION_REPEATED"
	PromptTooLong   Code = "PROMPT_TOO_LONG"
	AgentRefused    Code = "AGENT_REFUSED"
	AgentUsage      Code = "AGENT_USAGE"
	AgentFailed     Code = "AGENT_FAILED"
	UnknownOutcome  Code = "UNKNOWN_OUTCOME"
	APIError        Code = "API_ERROR"
	ContextFull     Code = "CONTEXT_FULL"
	ModelRefused    Code = "MODEL_REFUSED"
	NoAnswer        Code = "NO_ANSWER"
	OutputLimit     Code = "OUTPUT_LIMIT"
	SchemaUnmet     Code = "SCHEMA_UNMET"
)

// Entry is what the catalogue knows of a code.
type Entry struct {
	Code      Code   `json:"code"`
	Kind      Kind   `json:"kind"`
	Retryable bool   `json:"retryable"`
	Summary   string `json:"summary"`
	NextStep  string `json:"next_step"`
}

// table has a line for each code: its name, its kind, whether the same call may be repeated, what it means, what to do.
//
//go:embed codes.tsv
var table string

// Entry looks the code up. An unknown one is general and not retryable.
func (c Code) Entry() Entry {
	for line := range strings.Lines(table) {
		if name, _, _ := strings.Cut(line, "\t"); name == string(c) {
			return entryOf(line)
		}
	}
	return Entry{Code: c, Kind: General, Summary: "not in the catalogue"}
}

func entryOf(line string) Entry {
	f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
	return Entry{Code(f[0]), Kind(f[1]), f[2] == "again", f[3], f[4]}
}

// Catalogue lists every code.
func Catalogue() []Entry {
	var all []Entry
	for line := range strings.Lines(table) {
		all = append(all, entryOf(line))
	}
	return all
}
