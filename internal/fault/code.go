package fault

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
	UndeclaredCapability Code = "UNDECLARED_CAPABILITY"
	DiskFull             Code = "DISK_FULL"

	Invalid               Code = "VALIDATION_ERROR"
	ArgError              Code = "ARG_ERROR"
	MissingArgument       Code = "MISSING_ARGUMENT"
	UnknownCommand        Code = "UNKNOWN_COMMAND"
	UnknownFlag           Code = "UNKNOWN_FLAG"
	InvalidAgentInput     Code = "INVALID_AGENT_INPUT"
	InvalidJSON           Code = "INVALID_JSON"
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

	AuthRequired       Code = "AUTH_REQUIRED"
	CredentialsExpired Code = "CREDENTIALS_EXPIRED"
	MissingScopes      Code = "MISSING_SCOPES"

	TimedOut        Code = "TIMEOUT"
	TooManyRequests Code = "RATE_LIMITED"
	Down            Code = "UNAVAILABLE"
	Moved           Code = "COMMAND_MOVED"
	Interrupted     Code = "CANCELLED"

	Blocked       Code = "BLOCKED_BY_POLICY"
	NeedsInput    Code = "NEEDS_INPUT"
	PromptTooLong Code = "PROMPT_TOO_LONG"
	AgentRefused  Code = "AGENT_REFUSED"
	AgentUsage    Code = "AGENT_USAGE"
	AgentFailed   Code = "AGENT_FAILED"
	APIError      Code = "API_ERROR"
	ContextFull   Code = "CONTEXT_FULL"
	NoAnswer      Code = "NO_ANSWER"
	SchemaUnmet   Code = "SCHEMA_UNMET"
)

// Entry is what the catalogue knows of a code.
type Entry struct {
	Code      Code   `json:"code"`
	Kind      Kind   `json:"kind"`
	Retryable bool   `json:"retryable"`
	Summary   string `json:"summary"`
	NextStep  string `json:"next_step"`
}

// Entry looks the code up. An unknown one is general and not retryable.
func (c Code) Entry() Entry {
	for _, e := range Catalogue() {
		if e.Code == c {
			return e
		}
	}
	return Entry{Code: c, Kind: General, Summary: "not in the catalogue"}
}

// Catalogue lists every code with its kind, whether the same call may be repeated, what it means and what to do.
// Long because it is a table.
func Catalogue() []Entry {
	return []Entry{
		{
			Internal, General, false, "Something failed that has no code of its own.",
			"Run it again with --debug and report what it prints.",
		},
		{
			OutputFailed, General, false, "The result could not be written to standard output.",
			"Check the disk or the program that reads; the audit log has the outcome.",
		},
		{
			WarningsAsErrors, General, false, "There were warnings, and --warnings-as-errors was given.",
			"Correct what the warnings name, or leave the flag out.",
		},
		{
			PreflightFailed, General, false, "A required check of doctor failed.",
			"Run the fix that the failing check names.",
		},
		{
			SceneFailed, General, false, "A scene of the demo saw something else than it claims.",
			"Read different[] of the scene; then run: omniagent doctor",
		},
		{
			BatchFailed, General, false, "At least one line of the batch failed.",
			"Read the line's own error; later lines ran only with --ignore-errors.",
		},
		{
			UndeclaredCapability, General, false, "The command used something that its declaration does not mention.",
			"Report it: this is a fault of the program.",
		},

		{DiskFull, General, false, "The disk is full.", "Make room, for example with: omniagent cleanup"},

		{
			Invalid, Input, false, "One or more arguments are wrong; errors[] lists all of them.",
			"Correct the arguments that errors[] names and call again.",
		},
		{
			ArgError, Input, false, "The argument has the wrong type, value or form.",
			"Give a value that the message allows.",
		},
		{MissingArgument, Input, false, "A required argument was not given.", "Add the argument."},
		{UnknownCommand, Input, false, "There is no such command.", "Run: omniagent manifest"},
		{UnknownFlag, Input, false, "The command has no such flag.", "Run the command with --help."},
		{
			InvalidAgentInput, Input, false,
			"The value looks made up or smuggled: a placeholder, an escape, a path in an id.",
			"Give the plain value; corrected_input has it where it can be told.",
		},
		{
			InvalidJSON, Input, false, "The text is not JSON, even read with tolerance.",
			"Correct it at the place that the message names.",
		},
		{
			InvalidCursor, Input, false, "The cursor is damaged or belongs to another query.",
			"Start again without --cursor.",
		},
		{
			SecretOnCommandLine, Input, false, "A secret was given as an argument, where every process can read it.",
			"Give it through the environment or a file.",
		},
		{
			StdinTooLarge, Input, false, "Standard input is larger than the limit.",
			"Write it to a file and give --input-file.",
		},
		{
			StdinEmpty, Input, false, "Standard input was asked for and is empty.",
			"Pipe the value in, or give it as an argument.",
		},
		{FieldTooLarge, Input, false, "A value is longer than its field allows.", "Shorten it."},
		{
			ConfirmationRequired, Input, false, "The command destroys something and was not confirmed.",
			"Look at it with --dry-run, then add --confirm-destructive.",
		},
		{
			ConfigInvalid, Input, false, "A configuration file cannot be read as configuration.",
			"Correct the file at the line that the message names.",
		},
		{ConfigKeyUnknown, Input, false, "There is no such configuration key.", "Run: omniagent config list"},
		{
			DispatchParse, Input, false, "A line of the batch is not a dispatch request.",
			"Give a JSON object with _cmd naming a command of the manifest.",
		},
		{
			SchemaVersion, Input, false, "That version of the output schema is not offered.",
			"Leave --schema-version out, or give 1.",
		},
		{StreamingNotSupported, Input, false, "The command cannot stream.", "Leave --stream out."},
		{
			ShellString, Input, false, "A command for a shell was given where an argument list belongs.",
			"Give the program and each argument by itself.",
		},
		{
			Unsupported, Input, false, "This agent cannot do what was asked for, and it is not left out in silence.",
			"Leave it out, or choose an agent that has it: omniagent agents list",
		},

		{
			PartialFailure, Partial, false, "Part of the work was done and part failed.",
			"Read completed_steps or results[]; do not repeat it blindly.",
		},

		{
			StdinRequired, Precondition, false, "The command reads standard input, and there is none.",
			"Pipe the input in, or give --input-file.",
		},
		{
			InputRequired, Precondition, false, "The command would have to ask, and nobody can answer.",
			"Give the flag that the message names.",
		},
		{
			ReplProhibited, Precondition, false, "A conversation needs a terminal.",
			"Use the one-shot form that the message names.",
		},
		{LockHeld, Precondition, true, "Another process holds the lock.", "Wait retry_after_ms and call again."},
		{
			SymlinkLoop, Precondition, false, "A symbolic link leads back to a directory above it.",
			"Remove the link, or give --no-follow-symlinks.",
		},
		{DepthExceeded, Precondition, false, "The tree is deeper than --max-depth.", "Raise --max-depth."},
		{
			NoHome, Precondition, false, "No home directory is known, so there is no place for this.",
			"Set HOME, or the XDG variable that the message names.",
		},
		{
			Unsafe, Precondition, false, "The path is not what it must be: a link, or owned by somebody else.",
			"Look at the path that the message names and put it right.",
		},

		{FileMissing, NotFound, false, "The file does not exist.", "Check the path; relative paths start at --cwd."},
		{NotFoundCode, NotFound, false, "The thing that was named does not exist.", "List what there is."},
		{
			NotInstalled, NotFound, false, "The program is not installed.",
			"Run the install command that the message names.",
		},
		{
			AlreadyExists, Conflict, false, "It exists already; data has it.",
			"Use the existing one, or choose another name.",
		},

		{
			ConcurrentModification, Conflict, true, "Another process is changing the same file.",
			"Wait retry_after_ms and call again.",
		},
		{
			Conflicting, Conflict, false, "Somebody else has it, or has done it already.",
			"Look at who has it, and decide again.",
		},
		{
			IdempotencyKeyReused, Conflict, false, "The idempotency key was used for a different call.",
			"Use a new key for a new call.",
		},

		{
			PermissionDenied, Denied, false, "The system refuses access.",
			"Ask for the permission that the message names.",
		},

		{AuthRequired, Auth, false, "No credentials were found.", "Set one of auth_methods."},
		{CredentialsExpired, Auth, false, "The credentials have expired.", "Log in again, or set a new key."},
		{
			MissingScopes, Auth, false, "The configured scopes do not cover the command.",
			"Add missing_scopes to the configuration key scopes.",
		},

		{
			TimedOut, Timeout, false, "The time limit passed.",
			"Look at what was done, then call again with a longer --timeout.",
		},
		{
			TooManyRequests, RateLimited, true, "The service asks to be called less often.",
			"Wait retry_after_ms and call again.",
		},
		{Down, Unavailable, true, "The service does not answer.", "Call again, waiting longer each time."},
		{Moved, Redirected, false, "The command has another name now.", "Run redirect.command."},
		{Interrupted, Cancelled, false, "A signal ended the call.", "Look at what was done before calling again."},

		{
			Blocked, Denied, false, "An agent was not allowed to run a tool, or nobody could be asked.",
			"Allow more with --approval, or let a person answer.",
		},
		{
			NeedsInput, Precondition, false, "An agent asks something that only a person can answer.",
			"Answer the question that the message quotes.",
		},
		{
			PromptTooLong, Input, false, "The prompt is longer than this agent takes.",
			"Shorten it, or put the text into a file that the agent reads.",
		},
		{
			AgentRefused, Precondition, false, "An agent refuses to work under these conditions.",
			"Do what the hint says.",
		},
		{
			AgentUsage, Input, false, "An agent rejects its arguments.",
			"Read what it printed; omniagent agents show NAME lists what it takes.",
		},
		{AgentFailed, General, false, "An agent ended with a failure of its own.", "Read what it printed."},
		{APIError, General, false, "The model behind an agent answered with an error.", "Read what the agent printed."},
		{ContextFull, General, false, "The conversation is longer than the model can read.", "Begin a new session."},
		{
			NoAnswer, General, false, "An agent reported success without an answer or a turn of the model.",
			"Run it again; if it stays so, run the agent by itself.",
		},
		{
			SchemaUnmet, General, false, "No answer of an agent fitted the JSON schema.",
			"Simplify the schema, or allow more with --output-schema-retries.",
		},
	}
}
