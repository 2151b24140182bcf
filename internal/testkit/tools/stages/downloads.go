package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// downloads are what later stages need. What has to be downloaded comes in the background while the compiler works.
type downloads struct {
	agents   installed // the directory of their programs
	programs installed // the directory of the modules of the hosts that drive us
	debian   string    // an empty Debian in a file; "" where it cannot be had
	log      *os.File
	over     chan struct{} // nil: they have been awaited
}

// installed is a folder that a script has filled: "" without npm. It is not ready where the script has failed.
type installed struct {
	ready  bool
	folder string
}

func (r *runner) beginDownloads() (err error) {
	if r.log, err = os.CreateTemp(r.tmp, "downloads"); err != nil {
		return err
	}
	r.over = make(chan struct{})
	go func() {
		defer close(r.over)
		r.download()
	}()
	return nil
}

// awaitDownloads waits for them, the first time, and shows what they have printed. A stage says what it lacks.
func (r *runner) awaitDownloads() {
	if r.over == nil {
		return
	}
	fmt.Fprintln(r.out, "\n== what was downloaded meanwhile")
	<-r.over
	r.over = nil
	text, _ := os.ReadFile(r.log.Name())
	_, _ = r.out.Write(text)
	_ = r.log.Close()
}

func (r *runner) download() {
	agents := os.Getenv("AGENTS")
	// What the sandbox of Claude Code needs.
	if agents != "0" && !(has("bwrap") && has("socat")) && !r.installDebian("bubblewrap", "socat") {
		r.note("without bubblewrap and socat, which the sandbox of Claude Code needs, its scenarios are skipped")
	}
	// What looks at packages.
	if r.wants("packages") && !(has("ruby") && has("lintian")) && !r.installDebian("ruby", "lintian") {
		r.note("without ruby and lintian the formula is not run, and the Debian packages are not checked by it")
	}
	if agents != "0" && (r.wants("agents") || r.wants("hosts")) {
		if agents == "1" {
			agents = ""
		}
		r.agents = r.install("scripts/agents", agents)
	}
	if r.wants("hosts") {
		r.programs = r.install("scripts/hosts", os.Getenv("HOSTS"))
	}
	if r.wants("packages") {
		r.debian = r.emptyDebian()
	}
}

func (r *runner) note(text string) { fmt.Fprintln(r.log, "note ", text) }

// install runs a script that prints the folder that it has filled with npm: a given one, or its own.
func (r *runner) install(script, folder string) installed {
	if !has("npm") {
		return installed{ready: true}
	}
	cmd := r.program(script)
	if folder != "" {
		cmd.Args = append(cmd.Args, folder)
	}
	cmd.Stderr = r.log
	text, err := r.output(cmd, false)
	if err != nil {
		fmt.Fprintf(r.log, "FAIL  %s: %v\n", script, err)
		return installed{}
	}
	return installed{ready: true, folder: line(text)}
}

// installDebian installs packages where that is possible without asking anybody.
func (r *runner) installDebian(packages ...string) bool {
	if os.Geteuid() != 0 || !has("apt-get") {
		return false
	}
	text, err := r.output(r.program("apt-get", "update", "-qq"), true)
	if err == nil {
		args := append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...)
		var more []byte
		more, err = r.output(with(r.program("apt-get", args...), "DEBIAN_FRONTEND=noninteractive"), true)
		text = append(text, more...)
	}
	if err != nil {
		indent(r.log, text)
	}
	return err == nil
}

// emptyDebian makes an empty Debian to install the package in.
func (r *runner) emptyDebian() string {
	file := filepath.Join(r.tmp, "debian.tar")
	var text []byte
	if (has("mmdebstrap") || r.installDebian("mmdebstrap")) && os.Geteuid() == 0 {
		var err error
		text, err = r.output(r.program("mmdebstrap", "--variant=minbase", "--include=bash-completion,man-db,apparmor",
			`--aptopt=Acquire::Check-Valid-Until "false"`, "stable", file), true) // a mirror may be days old
		if err == nil {
			return file
		}
	}
	r.note("the package is not installed in an empty Debian: that takes root, mmdebstrap and the archive of Debian")
	lines := bytes.SplitAfter(bytes.TrimRight(text, "\n"), []byte("\n"))
	indent(r.log, bytes.Join(lines[max(0, len(lines)-3):], nil))
	return ""
}
