package tool

import (
	"slices"
	"strings"
)

// grepTypes returns the file name patterns of each type. The types have ripgrep's names. Long because it is a table.
func grepTypes() map[string]string {
	return map[string]string{
		"asciidoc": "*.adoc *.asc *.asciidoc",
		"asm":      "*.asm *.s *.S",
		"avro":     "*.avdl *.avpr *.avsc",
		"awk":      "*.awk",
		"c":        "*.[chH] *.[chH].in *.cats",
		"clojure":  "*.clj *.cljc *.cljs *.cljx",
		"cmake":    "*.cmake CMakeLists.txt",
		"config":   "*.cfg *.conf *.config *.ini",
		"cpp":      "*.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl *.[ChH].in *.cc.in *.[ch]pp.in *.[ch]xx.in *.hh.in",
		"cs":       "*.cs",
		"css":      "*.css *.scss",
		"csv":      "*.csv",
		"cuda":     "*.cu *.cuh",
		"d":        "*.d",
		"dart":     "*.dart",
		"diff":     "*.patch *.diff",
		"docker":   "*Dockerfile*",
		"elisp":    "*.el",
		"elixir":   "*.ex *.eex *.exs",
		"elm":      "*.elm",
		"erlang":   "*.erl *.hrl",
		"fish":     "*.fish",
		"fortran":  "*.f *.F *.f77 *.F77 *.pfo *.f90 *.F90 *.f95 *.F95",
		"fsharp":   "*.fs *.fsx *.fsi",
		"go":       "*.go",
		"gradle":   "*.gradle",
		"graphql":  "*.graphql *.graphqls",
		"groovy":   "*.groovy *.gradle",
		"h":        "*.h *.hpp",
		"haskell":  "*.hs *.lhs *.cpphs *.c2hs *.hsc",
		"html":     "*.htm *.html *.ejs",
		"java":     "*.java *.jsp *.jspx *.properties",
		"jinja":    "*.j2 *.jinja *.jinja2",
		"jl":       "*.jl",
		"js":       "*.js *.jsx *.vue *.cjs *.mjs",
		"json":     "*.json composer.lock",
		"jsonl":    "*.jsonl",
		"julia":    "*.jl",
		"kotlin":   "*.kt *.kts",
		"less":     "*.less",
		"lisp":     "*.el *.jl *.lisp *.lsp *.sc *.scm",
		"log":      "*.log",
		"lua":      "*.lua",
		"make": "[Gg][Nn][Uu]makefile [Mm]akefile [Gg][Nn][Uu]makefile.am [Mm]akefile.am [Gg][Nn][Uu]makefile.in " +
			"[Mm]akefile.in *.mk *.mak",
		"markdown": "*.markdown *.md *.mdown *.mkdn *.mdx *.mkd",
		"md":       "*.markdown *.md *.mdown *.mkdn *.mdx *.mkd",
		"nim":      "*.nim *.nimf *.nimble *.nims",
		"nix":      "*.nix",
		"objc":     "*.h *.m",
		"ocaml":    "*.ml *.mli *.mll *.mly",
		"org":      "*.org *.org_archive",
		"perl":     "*.perl *.pl *.PL *.plh *.plx *.pm *.t",
		"php":      "*.php *.php3 *.php4 *.php5 *.phtml",
		"protobuf": "*.proto",
		"ps":       "*.cdxml *.ps1 *.ps1xml *.psd1 *.psm1",
		"puppet":   "*.erb *.pp *.rb",
		"py":       "*.py",
		"r":        "*.R *.r *.Rmd *.Rnw",
		"rst":      "*.rst",
		"ruby":     "config.ru Gemfile .irbrc Rakefile *.gemspec *.rb *.rbw",
		"rust":     "*.rs",
		"sass":     "*.sass *.scss",
		"scala":    "*.scala *.sbt",
		"sh": ".bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin " +
			".zlogout " +
			".zprofile .zshenv .zshrc bash_login bash_logout bash_profile bashrc profile zlogin zlogout zprofile " +
			"zshenv " +
			"zshrc *.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.sh *.tcsh *.zsh",
		"sml":      "*.sml *.sig",
		"solidity": "*.sol",
		"sql":      "*.sql *.psql",
		"svelte":   "*.svelte",
		"svg":      "*.svg",
		"swift":    "*.swift",
		"tcl":      "*.tcl",
		"tex":      "*.tex *.ltx *.cls *.sty *.bib *.dtx *.ins",
		"tf": "*.tf *.auto.tfvars terraform.tfvars *.tf.json *.auto.tfvars.json terraform.tfvars.json *.terraformrc " +
			"terraform.rc *.tfrc *.terraform.lock.hcl",
		"thrift": "*.thrift",
		"toml":   "*.toml Cargo.lock",
		"ts":     "*.ts *.tsx *.cts *.mts",
		"txt":    "*.txt",
		"vb":     "*.vb",
		"vim":    "*.vim .vimrc .gvimrc vimrc gvimrc _vimrc _gvimrc",
		"vue":    "*.vue",
		"xml":    "*.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt",
		"yaml":   "*.yaml *.yml",
		"zig":    "*.zig",
		"zsh":    ".zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc *.zsh",
	}
}

// grepType returns the patterns of a type, also under the names of other tools.
func grepType(name string) []string {
	name = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(name), "."))
	others := map[string]string{
		"golang": "go", "python": "py", "javascript": "js", "jsx": "js", "mjs": "js", "typescript": "ts", "tsx": "ts",
		"rs": "rust",
		"rb": "ruby", "c++": "cpp", "cc": "cpp", "cxx": "cpp", "hpp": "cpp", "csharp": "cs", "c#": "cs", "kt": "kotlin",
		"hs":  "haskell",
		"yml": "yaml", "htm": "html", "bash": "sh", "shell": "sh", "makefile": "make", "dockerfile": "docker",
		"terraform": "tf",
		"tf.json":   "tf", "ex": "elixir", "exs": "elixir", "erl": "erlang", "pl": "perl", "proto": "protobuf",
		"ml":   "ocaml",
		"text": "txt", "powershell": "ps",
		"ps1": "ps", "scss": "sass", "latex": "tex", "gql": "graphql", "sol": "solidity", "m": "objc",
	}
	if known := others[name]; known != "" {
		name = known
	}
	return strings.Fields(grepTypes()[name])
}

func grepTypeNames() string {
	var names []string
	for name := range grepTypes() {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
