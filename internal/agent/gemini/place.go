package gemini

import (
	"io"
	"os"
	"path/filepath"
	"syscall"

	"omniagent/internal/agent"
	"omniagent/internal/agent/cli"
	"omniagent/internal/lines"
)

// home is the directory in which the CLI keeps its own, .gemini. Empty: not known.
func home(env []string) string {
	for _, name := range []string{"GEMINI_CLI_HOME", "HOME", "USERPROFILE"} {
		if dir, ok := cli.Lookup(env, name); ok && dir != "" {
			return dir
		}
	}
	return ""
}

// own is a path in .gemini. Empty: not known.
func own(env []string, path ...string) string {
	dir := home(env)
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir, ".gemini"}, path...)...)
}

// systemDir is where the machine's own settings are.
func systemDir(system string) string {
	switch system {
	case "darwin":
		return "/Library/Application Support/GeminiCli"
	case "windows":
		return `C:\ProgramData\gemini-cli`
	}
	return "/etc/gemini-cli"
}

// settingsFiles lists what the CLI merges its settings from, the strongest first. The repository's counts only where it
// is trusted.
func settingsFiles(s agent.Spec) []string {
	repository := filepath.Join(s.Dir, ".gemini", "settings.json")
	system := lookup(s.Env, "GEMINI_CLI_SYSTEM_SETTINGS_PATH", filepath.Join(systemDir(s.Machine.OS), "settings.json"))
	defaults := lookup(s.Env, "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
		filepath.Join(filepath.Dir(system), "system-defaults.json"))
	return []string{system, repository, own(s.Env, "settings.json"), defaults}
}

func lookup(env []string, name, otherwise string) string {
	if value, ok := cli.Lookup(env, name); ok && value != "" {
		return value
	}
	return otherwise
}

const maxHead = 1 << 20 // bytes that are read of a settings file; usual ones have some hundred

// head reads the beginning of a regular file, or nothing.
func head(path string) []byte {
	f, _, err := openRegular(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, _ := io.ReadAll(io.LimitReader(f, maxHead))
	return data
}

// openRegular opens a file, and nothing else: a pipe without a writer would hold us for ever. Should one take the
// file's place after the look, O_NONBLOCK keeps the open from waiting.
func openRegular(path string) (*os.File, int64, error) {
	if path == "" {
		return nil, 0, os.ErrNotExist
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, 0, os.ErrNotExist
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, 0, os.ErrNotExist
	}
	return f, info.Size(), nil
}

const maxLine = 1 << 20 // bytes of a line of a transcript that are kept

// eachLine calls the function with every line of the file from the offset on, until it returns false. Of a longer line
// it gets the beginning, and is told that it is not whole. A last line without an end is one too.
func eachLine(path string, from int64, take func(data []byte, whole bool) bool) {
	f, _, err := openRegular(path)
	if err != nil {
		return
	}
	defer f.Close()
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return
	}
	for in := lines.NewReader(f, maxLine); in.Next() && take(in.Text, !in.Long); {
	}
}
