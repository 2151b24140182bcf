package sqlite

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func unzip(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return data
}

// written puts a database and its log into files.
func written(t testing.TB, db, wal []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.db")
	if err := errors.Join(os.WriteFile(path, db, 0o600), os.WriteFile(path+"-wal", wal, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLongConversation: all rows of a large table are found, each by its number.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	f, err := Open(written(t, unzip(t, "long.db.gz"), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tables, err := f.Tables()
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := f.Under(tables["message_session_time_created_id_idx"], "s")
	if err != nil || len(numbers) != 9000 {
		t.Fatalf("%d rows, %v", len(numbers), err)
	}
	for _, number := range numbers {
		row, err := f.Row(tables["message"], number)
		if err != nil || tables["message"].Text(row, "id") != "m" {
			t.Fatalf("row %d: %v, %v", number, row, err)
		}
	}
}

// everything reads all that can be read, and counts the rows of the tables by name.
func everything(path string) (map[string]int, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tables, err := f.Tables()
	if err != nil {
		return nil, err
	}
	rows := map[string]int{}
	for name, table := range tables {
		if err := f.Newest(table, func(row []any) bool {
			id := table.Text(row, "id")
			_ = table.Number(row, "time_created")
			_, _ = f.Under(tables["message_session_time_created_id_idx"], id)
			_, _ = f.Under(tables["event_aggregate_seq_idx"], id, int64(rows[name]))
			rows[name]++
			return true
		}); err != nil && !strings.HasSuffix(name, "_idx") && !strings.HasPrefix(name, "sqlite_autoindex") {
			return rows, err
		}
		_, _ = f.Row(table, int64(rows[name]))
	}
	if !f.Valid() {
		return rows, errors.New("the log changed")
	}
	return rows, nil
}

// TestReal reads the database of six runs of opencode, one with a sub-agent. Those of the last two are in its log only.
func TestReal(t *testing.T) {
	db, wal := unzip(t, "opencode.db.gz"), unzip(t, "opencode.db-wal.gz")
	with, err := everything(written(t, db, wal))
	if err != nil || with["session"] != 7 || with["message"] != 20 || with["part"] != 33 || with["event"] != 7 {
		t.Errorf("with its log: %v, %v", with, err)
	}
	without, err := everything(written(t, db, nil))
	if err != nil || without["session"] != 4 {
		t.Errorf("without: %v, %v", without, err)
	}
}

func TestRefused(t *testing.T) {
	db, wal := unzip(t, "opencode.db.gz"), unzip(t, "opencode.db-wal.gz")
	changed := func(at int, b byte) []byte {
		out := bytes.Clone(db)
		out[at] = b
		return out
	}
	for name, path := range map[string]string{
		"nothing":          written(t, nil, nil),
		"another file":     written(t, []byte(strings.Repeat("SQLite format 2\x00", 100)), nil),
		"a later version":  written(t, changed(19, 3), nil),
		"an odd page size": written(t, changed(17, 1), nil),
		"UTF-16":           written(t, changed(59, 2), nil),
		"cut":              written(t, db[:len(db)/2], nil),
		"another's log":    written(t, db, append([]byte("log"), wal...)),
		"a directory":      t.TempDir(),
		"nowhere":          filepath.Join(t.TempDir(), "x"),
	} {
		if rows, err := everything(path); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, %v", name, rows, err)
		}
	}
}

func TestColumns(t *testing.T) {
	got := columns(
		"CREATE TABLE `x` (`id` text PRIMARY KEY, \"n\" integer DEFAULT (1+2) NOT NULL,\n d text, CONSTRAINT `a` " +
			"FOREIGN KEY (`d`) REFERENCES `y`(`id`), PRIMARY KEY(`id`, `n`)) WITHOUT ROWID")
	if len(got) != 3 || got["id"] != 0 || got["n"] != 1 || got["d"] != 2 {
		t.Errorf("%v", got)
	}
	if got := columns("CREATE"); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// FuzzFile: a damaged database is read wrongly at worst, never for ever and never with a panic.
func FuzzFile(f *testing.F) {
	db, wal := unzip(f, "opencode.db.gz"), unzip(f, "opencode.db-wal.gz")
	f.Add(db, wal)
	f.Add(db, []byte{})
	for _, at := range []int{16, 20, 100, 103, 108, 1024, 1027, 5000, 20000} {
		damaged := bytes.Clone(db)
		damaged[at] ^= 0xff
		f.Add(damaged, wal)
		f.Add(db[:at], wal[:at])
	}
	f.Fuzz(func(t *testing.T, db, wal []byte) { _, _ = everything(written(t, db, wal)) })
}
