package gemini

import (
	"encoding/json"
	"path/filepath"

	"omniagent/internal/agents/cli"
	"omniagent/internal/core/agent"
)

// rehearse points the CLI to our model server. It adds a private home with settings that choose how to sign in, which
// no variable can, and that trust only this directory. It removes the variables that would lead the CLI elsewhere.
func rehearse(t *cli.Translation, s agent.Spec) {
	r := s.Rehearsal
	temp := filepath.Join(r.Home, "tmp")
	t.Env = append(t.Env,
		"HOME="+r.Home,
		"USERPROFILE="+r.Home,
		"GEMINI_CLI_HOME="+r.Home,
		"TMPDIR="+temp, "TEMP="+temp, "TMP="+temp, // the CLI leaves a report there for every failed request
		"GOOGLE_GEMINI_BASE_URL="+r.URL,
		"GEMINI_API_KEY="+r.Key,
		// the machine's settings could forbid the key
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH="+filepath.Join(r.Home, "no-system-settings.json"),
	)
	keep := func(data []byte, path ...string) {
		t.Files = append(t.Files, agent.File{
			Path: filepath.Join(r.Home, filepath.Join(path...)), Data: data, Keep: true,
		})
	}
	keep(rehearsalSettings(), ".gemini", "settings.json")
	trust, _ := json.Marshal(map[string]string{s.Dir: "TRUST_FOLDER"}) // strings always encode
	keep(trust, ".gemini", "trustedFolders.json")
	keep(nil, "tmp", ".keep")
	t.Unset = []string{
		"GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH",
		"GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
		"GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA", "GOOGLE_VERTEX_BASE_URL",
		"GOOGLE_GENAI_API_VERSION",
		"GOOGLE_APPLICATION_CREDENTIALS", "GEMINI_MODEL", "GEMINI_API_KEY_AUTH_MECHANISM", "GEMINI_CLI_CUSTOM_HEADERS",
		"CLOUD_SHELL", "GEMINI_CLI_USE_COMPUTE_ADC",
		"GEMINI_SYSTEM_MD", "GEMINI_WRITE_SYSTEM_MD", "GEMINI_TELEMETRY_ENABLED", "GEMINI_CLI_ACTIVITY_LOG_TARGET",
		"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy",
	}
}

// rehearsalSettings returns the user's settings in the private home.
func rehearsalSettings() []byte {
	type object = map[string]any
	data, _ := json.Marshal(object{ // strings, numbers and booleans always encode
		"security":  object{"auth": object{"selectedType": "gemini-api-key"}},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"general": object{
			"enableAutoUpdate": false, "enableAutoUpdateNotification": false,
			"sessionRetention": object{"enabled": false}, // concurrent runs would remove each other's transcripts
			"maxAttempts":      1,                        // otherwise it retries for more than three minutes
		},
	})
	return data
}
