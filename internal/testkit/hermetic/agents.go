package hermetic

import (
	"fmt"
	"os"
	"path/filepath"
)

// Wire sets a home up so that an agent finds the model at url by itself, as a person would have done it, and returns
// the variables for that. A request that fails is not repeated for minutes.
func Wire(agent, home, work, url string) (env []string, err error) {
	const key = "k0123456789012345678901234567890"
	files := map[string]string{}
	switch agent {
	case "codex":
		files[".codex/config.toml"] = fmt.Sprintf(
			"model = \"gpt-5\"\nmodel_provider = \"test\"\n[model_providers.test]\n"+
				"name = \"test\"\nbase_url = %q\nenv_key = \"CODEX_TEST_KEY\"\nwire_api = "+
				"\"responses\"\nrequest_max_retries = "+
				"0\nstream_max_retries = 0\n[analytics]\nenabled = false\n[features]\nplugins = false\n", url+"/v1")
	case "gemini":
		files[".gemini/settings.json"] = `{"security":{"auth":{"selectedType":"gemini-api-key"}},` +
			`"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},` +
			`"general":{"enableAutoUpdate":false,"maxAttempts":1}}`
		files[".gemini/trustedFolders.json"] = fmt.Sprintf(`{%q:"TRUST_FOLDER"}`, work)
	case "copilot":
		files[".copilot/config.json"] = `{"appTipShown":true}`
	}
	for name, content := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return nil, err
		}
	}
	return []string{
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + key, "CLAUDE_CODE_MAX_RETRIES=0",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CODEX_TEST_KEY=k", "GEMINI_API_KEY=" + key,
		"GOOGLE_GEMINI_BASE_URL=" + url, "COPILOT_PROVIDER_BASE_URL=" + url + "/v1", "COPILOT_PROVIDER_API_KEY=" + key,
		"COPILOT_MODEL=gpt-5", "COPILOT_OFFLINE=true", "COPILOT_AUTO_UPDATE=false", "NO_PROXY=127.0.0.1",
		"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
		"OPENCODE_DISABLE_SHARE=1", "OPENCODE_DISABLE_AUTOCOMPACT=1",
		`OPENCODE_CONFIG_CONTENT={"model":"test/gpt-5","small_model":"test/gpt-5","autoupdate":false,` +
			`"agent":{"title":{"disable":true}},"provider":{"test":{"npm":"@ai-sdk/openai-compatible","name":"test",` +
			`"options":{"baseURL":"` + url + `/v1","apiKey":"` + key + `"},"models":{"gpt-5":{"name":"gpt-5"}}}}}`,
	}, nil
}
