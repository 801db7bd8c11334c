// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"strings"
	"testing"
)

func checkSVG(t *testing.T, name string, data []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "http://", "https://"} {
		content := strings.Replace(string(data), "http://www.w3.org/2000/svg", "", 1)
		if strings.Contains(content, bad) {
			t.Errorf("%s contains %q", name, bad)
		}
	}
}

func TestWellFormed(t *testing.T) {
	nan := math.NaN()
	series := []Series{Reference("glibc"), Style("ours & <co>", 0), Style("peer", 1)}
	checkSVG(t, "ratios", Ratios{
		Title: `a "title" & <b>`, Subtitle: "s", Axis: "ratio", Series: series,
		Rows: []RatioRow{
			{Label: "one", Values: []float64{1, 0.5, 2}},
			{Label: "two", Values: []float64{1, nan, nan}, Remark: "failed: <x>"},
			{Label: "three", Values: []float64{1, 0.01, 90}},
		},
	}.SVG())
	checkSVG(t, "lines", Lines{
		Title: "t", XAxis: "x", YAxis: "y", X: []float64{64, 1024, 4096}, Bytes: true, Series: series,
		Panels: []Panel{
			{Title: "p", Lines: []Line{{0, []float64{1, 2, 3}}, {1, []float64{nan, 2, nan}}, {2, []float64{nan, nan, nan}}}},
			{Title: "empty"},
		},
	}.SVG())
	checkSVG(t, "bars", Bars{
		Title: "t", Series: series, Common: true,
		Groups: []BarGroup{{Title: "g", Bars: []Bar{{0, 1, "1.00"}, {1, nan, "none"}}}, {Title: "none"}},
	}.SVG())
	for name, data := range map[string][]byte{"ratios": Ratios{}.SVG(), "lines": Lines{}.SVG(), "bars": Bars{}.SVG()} {
		checkSVG(t, "empty "+name, data)
	}
}

func TestScale(t *testing.T) {
	linear := scale{low: 0, high: 10, from: 100, to: 200}
	if got := linear.at(5); got != 150 {
		t.Errorf("linear: %v", got)
	}
	logarithmic := scale{low: 0.25, high: 4, from: 0, to: 100, logarithmic: true}
	if got := logarithmic.at(1); math.Abs(got-50) > 1e-9 {
		t.Errorf("logarithmic: %v", got)
	}
}

// One workload that is far off must not stretch the axis of all others.
func TestValuesFarOffAreNamed(t *testing.T) {
	made := Ratios{Series: []Series{Style("ours", 0), Style("peer", 1)}}
	for range 40 {
		made.Rows = append(made.Rows, RatioRow{Label: "usual", Values: []float64{0.8, 1.5}})
	}
	made.Rows = append(made.Rows, RatioRow{Label: "odd", Values: []float64{1.1, 300}})
	if low, high := made.span(); low < 0.5 || high > 3 {
		t.Errorf("the axis is from %v to %v", low, high)
	}
	if drawn := string(made.SVG()); !strings.Contains(drawn, "off the axis: peer 300<") || strings.Contains(drawn, "odd, peer") {
		t.Errorf("%s", drawn)
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		high float64
		want string
	}{
		{9.3, "0 2 4 6 8 10"}, {0.42, "0.0 0.1 0.2 0.3 0.4 0.5"}, {1000, "0 200 400 600 800 1000"}, {0, "0.0 0.2 0.4 0.6 0.8 1.0"},
	} {
		var labels []string
		for _, tick := range linearTicks(test.high, 5) {
			labels = append(labels, tick.label)
		}
		if got := strings.Join(labels, " "); got != test.want {
			t.Errorf("to %v: %q, want %q", test.high, got, test.want)
		}
	}
	for _, span := range [][2]float64{{0.9, 1.1}, {0.2, 3}, {0.01, 50}} {
		found := false
		for _, tick := range ratioTicks(span[0], span[1]) {
			found = found || tick.value == 1
		}
		if !found {
			t.Errorf("no tick at 1 within %v", span)
		}
	}
}

func TestStylesDiffer(t *testing.T) {
	seen := map[Series]int{}
	for i := range 12 {
		style := Style("", i)
		if other, found := seen[style]; found {
			t.Errorf("%d and %d look the same", i, other)
		}
		seen[style] = i
		if i > 0 && style.Color == Style("", 0).Color {
			t.Errorf("%d has the colour of the strong series", i)
		}
	}
}

func TestSizeLabel(t *testing.T) {
	for bytes, want := range map[float64]string{64: "64", 1024: "1K", 131072: "128K", 1 << 22: "4M", 1536: "1.5K"} {
		if got := SizeLabel(bytes); got != want {
			t.Errorf("%v: %q, want %q", bytes, got, want)
		}
	}
}
