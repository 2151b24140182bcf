package shell

import (
	"runtime"
	"slices"
	"strings"
)

// Handed is a group of variables that programs get, with the reason.
type Handed struct {
	Names []string // LC_* stands for all names with that prefix
	Why   string
}

func (h Handed) is(name string) bool {
	return slices.ContainsFunc(h.Names, func(known string) bool {
		prefix, open := strings.CutSuffix(known, "*")
		return sameName(known, name) || open && strings.HasPrefix(name, prefix)
	})
}

// HandedOn lists the variables that programs inherit. All others are dropped, among them deliberately:
//
//   - what makes a program load or run something: NODE_OPTIONS, NODE_PATH, PYTHONPATH, PYTHONSTARTUP, PERL5OPT,
//     PERL5LIB, RUBYOPT, RUBYLIB, JAVA_TOOL_OPTIONS, GOFLAGS (-toolexec), RUSTC_WRAPPER, MAKEFLAGS, LD_*, DYLD_*, GIT_*
//     (GIT_SSH_COMMAND, GIT_CONFIG_*, GIT_DIR);
//   - what lets a command act as the user elsewhere: SSH_AUTH_SOCK, GPG_AGENT_INFO, KUBECONFIG, DOCKER_HOST, AWS_*,
//     GOOGLE_*, AZURE_*;
//   - CI, which changes what tools do, and what colours.
//
// Long because it is a table.
func HandedOn() []Handed {
	list := []Handed{
		{[]string{"PATH"}, "where programs are; absolute directories only, and none of the workspace"},
		{
			[]string{"HOME", "USER", "LOGNAME", "SHELL"},
			"who and where the user is: caches and settings of tools lie there",
		},
		{
			[]string{"LANG", "LANGUAGE", "LC_*", "TZ", "TZDIR", "LOCALE_ARCHIVE"},
			"language, sorting and time: without them texts other than English break",
		},
		{[]string{"TMPDIR", "TEMP", "TMP"}, "where temporary files go"},
		{
			[]string{
				"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR",
				"XDG_CONFIG_DIRS", "XDG_DATA_DIRS",
			},
			"directories, for those who have moved them",
		},
		{
			[]string{
				"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
				"PIP_CERT", "CARGO_HTTP_CAINFO", "NIX_SSL_CERT_FILE",
			},
			"certificates of a company's network: public files, without which nothing can be fetched",
		},
		{
			[]string{
				"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY", "http_proxy", "https_proxy",
				"all_proxy", "no_proxy", "ftp_proxy",
			},
			"the way out of such a network; one with a password in it is kept back",
		},
		{
			[]string{
				"GOPATH", "GOROOT", "GOBIN", "GOCACHE", "GOMODCACHE", "GOTMPDIR", "GOPROXY", "GOPRIVATE",
				"GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOTOOLCHAIN", "CGO_ENABLED",
			},
			"Go: where it keeps what, and whom it asks; not GOFLAGS, which can name a program to run",
		},
		{
			[]string{"CARGO_HOME", "CARGO_TARGET_DIR", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTUP_DIST_SERVER"},
			"Rust: directories and the toolchain",
		},
		{
			[]string{
				"NVM_DIR", "NVM_BIN", "FNM_DIR", "FNM_MULTISHELL_PATH", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL",
				"DENO_DIR", "DENO_INSTALL", "COREPACK_HOME", "npm_config_cache", "npm_config_prefix",
				"npm_config_registry",
			},
			"JavaScript: directories and the registry; not NODE_OPTIONS and NODE_PATH, which load code",
		},
		{
			[]string{
				"PYENV_ROOT", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "CONDA_EXE", "POETRY_HOME",
				"PIPX_HOME", "UV_CACHE_DIR", "UV_PYTHON_INSTALL_DIR", "UV_INDEX_URL", "PIP_INDEX_URL", "PIP_CACHE_DIR",
			},
			"Python: directories and the index; not PYTHONPATH and PYTHONSTARTUP, which load code",
		},
		{
			[]string{
				"JAVA_HOME", "JDK_HOME", "M2_HOME", "MAVEN_HOME", "GRADLE_HOME", "GRADLE_USER_HOME",
				"ANDROID_HOME", "ANDROID_SDK_ROOT", "KOTLIN_HOME", "SCALA_HOME",
			},
			"Java: directories; not JAVA_TOOL_OPTIONS, which loads code",
		},
		{
			[]string{
				"RBENV_ROOT", "GEM_HOME", "GEM_PATH", "DOTNET_ROOT", "COMPOSER_HOME", "GHCUP_INSTALL_BASE_PREFIX",
				"OPAM_SWITCH_PREFIX", "FLUTTER_ROOT",
				"ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "SDKMAN_DIR", "NIX_PATH", "NIX_PROFILES",
				"HOMEBREW_PREFIX", "HOMEBREW_CELLAR", "HOMEBREW_REPOSITORY",
				"DEVELOPER_DIR", "SDKROOT", "PKG_CONFIG_PATH",
			},
			"other languages and managers of versions: directories",
		},
		{[]string{"SOURCE_DATE_EPOCH"}, "builds that are the same every time"},
	}
	if runtime.GOOS == "windows" {
		list = append(list, Handed{[]string{
			"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "OS", "NUMBER_OF_PROCESSORS",
			"PROCESSOR_ARCHITECTURE", "USERPROFILE", "USERNAME",
			"USERDOMAIN", "COMPUTERNAME", "HOMEDRIVE", "HOMEPATH", "APPDATA", "LOCALAPPDATA", "ALLUSERSPROFILE",
			"PUBLIC", "ProgramData", "ProgramFiles",
			"ProgramFiles(x86)", "ProgramW6432", "CommonProgramFiles", "CommonProgramFiles(x86)", "CommonProgramW6432",
			"MSYSTEM",
		}, "what programs on Windows do not start without"})
	}
	return list
}

// windows are for programs that show something to the user, who configured them.
func windows() Handed {
	return Handed{[]string{"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"}, "the screen"}
}
