package demo

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is the usual width of a terminal.
const width = 80

// Text returns the scenes for people: commands, output and result.
func Text(scenes []Scene) string {
	var b strings.Builder
	for i, sc := range scenes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, sc.Title)
		paragraph(&b, sc.About)
		for _, step := range sc.Steps {
			b.WriteString("\n")
			command(&b, step.Command+"; echo $?")
			for _, c := range step.Calls {
				call(&b, c)
			}
			indented(&b, "   ", step.Stdout)
			indented(&b, "   ", step.Stderr)
			fmt.Fprintf(&b, "   %d\n", step.Exit)
		}
		for _, f := range sc.Files {
			if f.Before != nil && f.After != nil && *f.Before != *f.After {
				fmt.Fprintf(&b, "\n   %s, before:  %s   %s, after:   %s", f.Name, line(*f.Before), f.Name,
					line(*f.After))
			}
		}
		b.WriteString("\n")
		for _, seen := range sc.Seen {
			paragraph(&b, seen)
		}
		for _, d := range sc.Different {
			paragraph(&b, "NOT AS CLAIMED: "+d)
		}
		fmt.Fprintf(&b, "   %s\n\n", measured(sc))
	}
	return b.String()
}

// measured describes how long a scene took, and the tokens of its model.
func measured(sc Scene) string {
	m := sc.Measured()
	text := fmt.Sprintf("%.1f s", float64(m.TookMS)/1000)
	if m.Input+m.Output > 0 {
		text += fmt.Sprintf("; %d tokens in and %d out", m.Input, m.Output)
	}
	return "Measured: " + text
}

// call writes a tool call and its result, without the text of files that were only read.
func call(b *strings.Builder, c Call) {
	fmt.Fprintf(b, "   %-5s %s\n", c.Tool, c.Target)
	if c.Tool != "Bash" {
		return
	}
	for l := range strings.Lines(c.Output) {
		if l = strings.TrimSpace(l); l != "" && l != "[stderr]" {
			fmt.Fprintf(b, "         %s\n", l)
		}
	}
}

func line(s string) string { return strings.TrimRight(s, "\n") + "\n" }

func indented(b *strings.Builder, by, text string) {
	for l := range strings.Lines(text) {
		b.WriteString(by + line(l))
	}
}

func paragraph(b *strings.Builder, text string) { b.WriteString(Paragraph(text)) }

// Paragraph returns a text formatted as in a scene, broken between words.
func Paragraph(text string) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString("   ")
			column = 3
		case column+1+n > width:
			b.WriteString("\n   ")
			column = 3
		default:
			b.WriteString(" ")
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String() + "\n"
}

// command writes a line that can be pasted; a long one is continued after a backslash, before a flag.
func command(b *strings.Builder, text string) {
	b.WriteString("   $ ")
	column := 5
	for i, part := range strings.Split(text, " --") {
		if i > 0 {
			part = "--" + part
			if column+1+len(part)+2 > width {
				b.WriteString(" \\\n       ")
				column = 7
			} else {
				b.WriteString(" ")
				column++
			}
		}
		b.WriteString(part)
		column += len(part)
	}
	b.WriteString("\n")
}
