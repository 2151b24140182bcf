package tool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	shownOutput  = 10_000 // bytes of one output of a cell
	shownImages  = 5      // of one notebook
	shownPicture = 1 << 20
)

// cellText is a text in a notebook: one string, or a list of its lines.
type cellText string

func (t *cellText) UnmarshalJSON(data []byte) error {
	var lines []string
	if json.Unmarshal(data, &lines) == nil {
		*t = cellText(strings.Join(lines, ""))
		return nil
	}
	var whole string
	if json.Unmarshal(data, &whole) == nil {
		*t = cellText(whole)
	}
	return nil // ignore anything else
}

type shownCell struct {
	ID      any        `json:"id"`
	Type    any        `json:"cell_type"`
	Count   any        `json:"execution_count"`
	Source  cellText   `json:"source"`
	Outputs outputList `json:"outputs"`
}

type outputList []cellOutput

func (l *outputList) UnmarshalJSON(data []byte) error {
	var outputs []cellOutput
	if json.Unmarshal(data, &outputs) == nil {
		*l = outputs
	}
	return nil
}

type cellOutput struct {
	Type      any                 `json:"output_type"`
	Text      cellText            `json:"text"`
	Data      map[string]cellText `json:"data"`
	Name      cellText            `json:"ename"`
	Value     cellText            `json:"evalue"`
	Traceback []string            `json:"traceback"`
}

// showNotebook renders the cells of a notebook as text. Images that they printed are returned separately.
func showNotebook(data []byte) ([]byte, []Image, error) {
	book, err := parseNotebook(decode(data).text)
	if err != nil {
		return nil, nil, err
	}
	var b strings.Builder
	var images []Image
	for i := range book.cells {
		var cell shownCell
		_ = json.Unmarshal(book.raw(i), &cell) // ignore members of other types
		fmt.Fprintf(&b, "Cell %d (%v", i, cell.Type)
		if id, ok := cell.ID.(string); ok {
			fmt.Fprintf(&b, ", id %s", id)
		}
		b.WriteString("):\n")
		b.WriteString(withEnd(string(cell.Source)))
		for _, o := range cell.Outputs {
			images = o.show(&b, images)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String()), images, nil
}

func (o cellOutput) show(b *strings.Builder, images []Image) []Image {
	text := string(o.Text)
	switch {
	case o.Name != "":
		text = fmt.Sprintf("%s: %s", o.Name, o.Value)
	case text == "":
		text = string(o.Data["text/plain"])
	}
	if len(text) > shownOutput {
		text = strings.ToValidUTF8(text[:shownOutput], "") + fmt.Sprintf("\n(The output is cut here; it has %d bytes.)",
			len(text))
	}
	if text != "" {
		b.WriteString("Output:\n" + withEnd(text))
	}
	for _, media := range []string{"image/png", "image/jpeg"} {
		encoded, ok := o.Data[media]
		if !ok {
			continue
		}
		picture, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(encoded)), ""))
		if err != nil || len(images) == shownImages || len(picture) > shownPicture {
			b.WriteString("Output: a picture that is not shown here\n")
			continue
		}
		images = append(images, Image{media, picture})
		fmt.Fprintf(b, "Output: picture %d\n", len(images))
	}
	return images
}

func withEnd(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
