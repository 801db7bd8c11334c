// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tcm/internal/demo"
)

func TestDemoWithoutAChart(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	out := filepath.Join(t.TempDir(), "chart.svg")
	for _, fails := range []bool{true, false} {
		flags := demoFlags{out: out}
		if fails {
			flags.out = filepath.Join(out, "none", "chart.svg")
		}
		var table strings.Builder
		err := flags.show(&table, []demo.Comparison{{Name: "a program"}})
		if (err != nil) != fails || !strings.Contains(table.String(), "a program") || strings.Contains(table.String(), "chart: ") == fails {
			t.Errorf("%v: %s", err, table.String())
		}
	}
	if chart, err := os.ReadFile(out); err != nil || !strings.HasPrefix(string(chart), "<svg") {
		t.Errorf("%.20q, %v", chart, err)
	}
}
