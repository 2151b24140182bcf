package setting

// Elsewhere returns the words of the agents themselves for approvals. Some mean the same as one of ours. The others
// would change more than the approval, or less, and are explained instead of being guessed at.
func Elsewhere() Synonyms {
	return Synonyms{
		Means: map[string]string{
			"acceptedits": string(AutoEdit), "full-auto": string(AutoEdit),
			"bypasspermissions": string(Yolo),
			"read-only":         string(Plan),
		},
		Refused: map[string]string{
			"never": "nothing is asked, and what the sandbox holds back fails; here that is auto-edit, or yolo with " +
				"--sandbox workspace-write",
			"untrusted":  "all but harmless commands are asked about; here that is prompt",
			"on-request": "the model decides what is asked about; here walls and undo decide, which is default",
			"dontask":    "what would be asked about is denied; here that is prompt where nobody can be asked",
		},
	}
}

// SandboxElsewhere returns the words of the agents themselves for sandboxes.
func SandboxElsewhere() Synonyms {
	return Synonyms{Refused: map[string]string{
		"read-only":          "nothing can be changed; here an approval does that: --approval plan",
		"danger-full-access": "there is none; here that is off",
	}}
}

// OutputElsewhere returns the words of our own commands, and of hosts, for the outputs of agents.
func OutputElsewhere() Synonyms {
	return Synonyms{Means: map[string]string{"plain": string(Text), "jsonl": string(StreamJSON)}}
}
