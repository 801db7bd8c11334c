// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package flame

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tcm/internal/profiles"
	"tcm/internal/testprofile"
)

func shop(t *testing.T, load int64) *profiles.Set {
	t.Helper()
	set, err := profiles.Select(testprofile.Shop(load), profiles.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func compared(t *testing.T, before, after *profiles.Set) *profiles.Set {
	t.Helper()
	set, err := profiles.Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// sets are all kinds that are drawn.
func sets(t *testing.T) map[string]*profiles.Set {
	return map[string]*profiles.Set{"heap": shop(t, 1), "grown": compared(t, shop(t, 1), shop(t, 3)), "shrunk": compared(t, shop(t, 3), shop(t, 1))}
}

func TestTree(t *testing.T) {
	for name, set := range sets(t) {
		root := newTree(set)
		before, after := set.Total()
		if root.old != before || root.new != after {
			t.Errorf("%s: the root has %v and %v, the stacks %v and %v", name, root.old, root.new, before, after)
		}
		var visit func(*node)
		visit = func(n *node) {
			sum := int64(0)
			for _, child := range n.children {
				sum += child.width
				visit(child)
			}
			if sum > n.width {
				t.Errorf("%s: the callees of %s need %d of its %d", name, n.frame.Name, sum, n.width)
			}
		}
		visit(root)
	}
	if root := newTree(compared(t, shop(t, 1), shop(t, 3))); len(root.children) != 1 || len(root.children[0].children) != 1 {
		t.Error("what did not change is drawn")
	}
}

// rectangle is what the pictures consist of.
type rectangle struct{ x, y, width float64 }

func TestPicture(t *testing.T) {
	for name, set := range sets(t) {
		var output bytes.Buffer
		if err := WriteSVG(&output, set, `a <title> & "more"`); err != nil {
			t.Fatal(err)
		}
		var boxes []rectangle
		decoder := xml.NewDecoder(bytes.NewReader(output.Bytes()))
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v in\n%s", name, err, output.String())
			}
			if element, ok := token.(xml.StartElement); ok && element.Name.Local == "rect" {
				boxes = append(boxes, newRectangle(element))
			}
		}
		if len(boxes) < 5 {
			t.Errorf("%s: %d boxes", name, len(boxes))
		}
		for _, box := range boxes {
			if box.x < 0 || box.x+box.width > pictureWidth {
				t.Errorf("%s: %v is outside the picture", name, box)
			}
		}
		checkReferences(t, name, strings.ReplaceAll(output.String(), `xmlns="http://www.w3.org/2000/svg"`, ""))
	}
}

func newRectangle(element xml.StartElement) rectangle {
	var made rectangle
	for _, attribute := range element.Attr {
		value, err := strconv.ParseFloat(attribute.Value, 64)
		if err != nil {
			continue
		}
		switch attribute.Name.Local {
		case "x":
			made.x = value
		case "y":
			made.y = value
		case "width":
			made.width = value
		}
	}
	return made
}

// reference fits all by which a page could load something.
var reference = regexp.MustCompile(`(?i)https?:|\bsrc\s*=|\bhref\s*=|url\(|@import|\bfetch\(|XMLHttpRequest`)

func checkReferences(t *testing.T, name, content string) {
	t.Helper()
	if found := reference.FindString(content); found != "" {
		t.Errorf("%s: %q refers to something outside", name, found)
	}
}

func TestPage(t *testing.T) {
	for name, set := range sets(t) {
		var output bytes.Buffer
		if err := WriteHTML(&output, set, `</script><b>title`); err != nil {
			t.Fatal(err)
		}
		content := output.String()
		checkReferences(t, name, content)
		if strings.Contains(content, "{{") || strings.Contains(content, "<b>title") {
			t.Errorf("%s: a placeholder is left, or the title is not escaped", name)
		}
		_, data, _ := strings.Cut(content, `id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		var made pageData
		if err := json.Unmarshal([]byte(data), &made); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if made.Compared != set.Compared || len(made.Root) != 11 || len(made.Strings) == 0 || len(made.Legend) == 0 {
			t.Errorf("%s: %+v", name, made)
		}
	}
}

func TestNothingToDraw(t *testing.T) {
	same := compared(t, shop(t, 1), shop(t, 1))
	if err := WriteSVG(io.Discard, same, ""); err == nil {
		t.Error("no difference is drawn as a picture")
	}
	if err := WriteHTML(io.Discard, same, ""); err == nil {
		t.Error("no difference is drawn as a page")
	}
}

func TestFit(t *testing.T) {
	for _, one := range []struct {
		content string
		width   float64
		want    string
	}{{"function", 80, "function"}, {"function", 50, "func…"}, {"function", 20, ""}, {"größe", 50, "größe"}} {
		if got := fit(one.content, one.width, 10); got != one.want {
			t.Errorf("%q in %.0f: %q", one.content, one.width, got)
		}
	}
}

func TestColors(t *testing.T) {
	if grew, less := changeColor(1, 1), changeColor(-1, 1); grew != "#f08070" || less != "#6ea5eb" {
		t.Errorf("%s and %s", grew, less)
	}
	if changeColor(0, 9) == changeColor(9, 9) || colorOf(99) != otherColor {
		t.Error("colours that are no colours")
	}
}
