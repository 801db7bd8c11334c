// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPagesSayNothingThatWasNotGiven(t *testing.T) {
	folder := t.TempDir()
	if err := writeTexts(folder); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(folder, "man1", "tcm-run.1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "--quiet") {
		t.Errorf("no flags in\n%s", page)
	}
	for _, unwanted := range []string{"Jan 0001", "=false", `=""`} {
		if strings.Contains(string(page), unwanted) {
			t.Errorf("%s in\n%s", unwanted, page)
		}
	}
}
