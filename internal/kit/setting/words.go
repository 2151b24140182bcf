package setting

// Elsewhere returns the words of the agents themselves for approvals. Some mean the same as one of ours. The others
// would change more than the approval, or less: they are refused with an explanation.
func Elsewhere() Synonyms {
	return Synonyms{
		Means: map[string]string{
			"acceptedits": string(AutoEdit), "full-auto": string(AutoEdit),
			"bypasspermissions": string(Yolo),
			"read-only":         string(Plan),
		},
		Refused: map[string]string{
			"never": "nothing is asked, and what the sandbox refuses fails; use auto-edit, or yolo with " +
				"--sandbox workspace-write",
			"untrusted":  "only harmless commands run without a question; use prompt",
			"on-request": "the model decides when to ask; use default, which asks about what undo cannot take back",
			"dontask":    "what would be asked about is denied; use prompt, which denies it where nobody can be asked",
		},
	}
}

// SandboxElsewhere returns the words of the agents themselves for sandboxes.
func SandboxElsewhere() Synonyms {
	return Synonyms{Refused: map[string]string{
		"read-only":          "nothing can be changed; use --approval plan",
		"danger-full-access": "commands run without a sandbox; use off",
	}}
}

// OutputElsewhere returns the words of our own commands, and of hosts, for the outputs of agents.
func OutputElsewhere() Synonyms {
	return Synonyms{Means: map[string]string{"plain": string(Text), "jsonl": string(StreamJSON)}}
}
