package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// many begins runs that work at the same time, measures our processes while they do, ends the agents, and counts the
// events.
func (p place) many(runs int) error {
	mark := filepath.Join(p.work, lasting)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(mark)
	var ids []string
	began := time.Now()
	for range runs {
		c, err := p.call(p.program, "run", "--agent", "gemini", "--yolo", "--detach", "-p", "x", "--output", "json")
		if err != nil {
			return err
		}
		var answer struct {
			Data struct {
				ID string `json:"run_id"`
			}
		}
		if err := json.Unmarshal([]byte(c.out), &answer); err != nil {
			return err
		}
		ids = append(ids, answer.Data.ID)
	}
	begun := time.Since(began)
	time.Sleep(10 * time.Second) // they work
	processes, pss := p.memory()
	if err := os.Remove(mark); err != nil {
		return err
	}
	told := 0
	for _, id := range ids {
		if _, err := p.call(p.program, "runs", "watch", id); err != nil {
			return err
		}
		n, err := p.complete(id)
		if err != nil {
			return err
		}
		told += n
	}
	fmt.Printf("%d runs at once: begun in %s, %d processes of ours, %.1f MiB each run, %d events, none lost\n", runs,
		begun.Round(time.Millisecond), processes, float64(pss)/float64(runs)/1024, told)
	return nil
}

// complete counts the words of a run, and fails if one is missing.
func (p place) complete(id string) (words int, err error) {
	raw, err := p.call(p.program, "runs", "logs", id, "--raw", "stdout")
	if err != nil {
		return 0, err
	}
	events, err := p.call(p.program, "runs", "logs", id)
	if err != nil {
		return 0, err
	}
	words = strings.Count(raw.out, `"delta":true`)
	for i := range words {
		if !strings.Contains(events.out, fmt.Sprintf("word %d ", i)) {
			return 0, fmt.Errorf("%s has lost word %d of %d", id, i, words)
		}
	}
	if words == 0 {
		return 0, errors.New("an agent said nothing")
	}
	return words, nil
}

// memory returns how many processes of ours there are, and the KiB that they have for themselves, with their part of
// what they share.
func (p place) memory() (processes, pss int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if exe, err := os.Readlink(filepath.Join(dir, "exe")); err != nil || exe != p.program {
			continue
		}
		data, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
		for line := range bytes.Lines(data) {
			if rest, is := bytes.CutPrefix(line, []byte("Pss:")); is {
				kib, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(string(rest)), " kB"))
				processes, pss = processes+1, pss+kib
			}
		}
	}
	return processes, pss
}
