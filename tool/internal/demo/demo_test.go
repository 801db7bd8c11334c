// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestRunIsInterleaved(t *testing.T) {
	var order []string
	cases := []Case{
		{Name: "good", About: "works", run: func(_ context.Context, variables map[string]string) (Figures, error) {
			order = append(order, variables["LD_PRELOAD"])
			seconds := 2.0
			if variables["LD_PRELOAD"] == "ours.so" {
				seconds = 1
			}
			return Figures{Seconds: seconds, CPUSeconds: seconds, PeakResident: 100}, nil
		}},
		{Name: "bad", About: "fails", run: func(_ context.Context, variables map[string]string) (Figures, error) {
			if variables["LD_PRELOAD"] == "ours.so" {
				return Figures{}, errors.New("crash <here>")
			}
			return Figures{Seconds: 1, CPUSeconds: 1, PeakResident: 1}, nil
		}},
	}
	t.Setenv("LD_PRELOAD", "")
	shown := &Demo{Library: "ours.so", Rounds: 3, Progress: io.Discard}
	comparisons, err := shown.Run(context.Background(), cases)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(order, " "); got != "libc.so.6 ours.so ours.so libc.so.6 libc.so.6 ours.so" {
		t.Errorf("order %q", got)
	}
	var table bytes.Buffer
	if err := WriteTable(&table, comparisons); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"0.50", "failed under ours: crash <here>"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	decoder := xml.NewDecoder(bytes.NewReader(Chart(comparisons)))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestOneRoundIsNoPlural(t *testing.T) {
	for rounds, want := range map[int]string{1: "Medians of 1 round.", 7: "Medians of 7 rounds."} {
		var conditions strings.Builder
		writeConditions(&conditions, rounds, 0, 2*rounds)
		if !strings.Contains(conditions.String(), want) {
			t.Error(conditions.String())
		}
	}
}

func TestServerWithoutFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	_, err := (&Demo{}).runRedis("redis-server", "redis-benchmark")(context.Background(), nil)
	if err == nil || !strings.Contains(err.Error(), " in "+missing+": ") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Error(err)
	}
}
