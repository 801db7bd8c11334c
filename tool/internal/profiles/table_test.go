// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tcm/internal/testprofile"
)

// update writes what the tests expect: go test ./internal/profiles -update.
var update = flag.Bool("update", false, "write the expected files")

func shop(t *testing.T, load int64, selection Selection) *Set {
	t.Helper()
	set, err := Select(testprofile.Shop(load), selection)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// compare holds an output against the file with this name.
func compare(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func TestOutputs(t *testing.T) {
	heap := shop(t, 1, Selection{})
	grown, err := Compare(heap, shop(t, 3, Selection{}))
	if err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]*Set{"heap": heap, "diff": grown} {
		var table, cumulative, report, stacks bytes.Buffer
		if err := set.WriteTable(&table, false, 3); err != nil {
			t.Fatal(err)
		}
		compare(t, name+".table", table.Bytes())
		if err := set.WriteTable(&cumulative, true, 0); err != nil {
			t.Fatal(err)
		}
		compare(t, name+".cumulative", cumulative.Bytes())
		encoder := json.NewEncoder(&report)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(set.Report(false, 2)); err != nil {
			t.Fatal(err)
		}
		compare(t, name+".json", report.Bytes())
		if err := set.WriteFolded(&stacks); err != nil {
			t.Fatal(err)
		}
		compare(t, name+".folded", stacks.Bytes())
	}
}

// TestTypeWithoutValues has a type that is 0 in all samples, and then in all but one.
func TestTypeWithoutValues(t *testing.T) {
	made := testprofile.Shop(1)
	made.SampleType = append(made.SampleType, &profile.ValueType{Type: "swapped_space", Unit: "bytes"})
	for _, sample := range made.Sample {
		sample.Value = append(sample.Value, 0)
	}
	for value, lines := range map[int64]int{0: 1, 4096: 7} {
		made.Sample[0].Value[2] = value
		set, err := Select(made, Selection{Type: "swapped_space"})
		if err != nil {
			t.Fatal(err)
		}
		var table bytes.Buffer
		if err := set.WriteTable(&table, false, 0); err != nil {
			t.Fatal(err)
		}
		saysSo := strings.HasPrefix(table.String(), "swapped_space: 0 B: no stack of the profile has any\n")
		if saysSo != (value == 0) || strings.Count(table.String(), "\n") != lines {
			t.Errorf("%d:\n%s", value, table.String())
		}
	}
}

// TestCodeInNoFile has two addresses that no mapped file has, one calling the other, and the same in a profile that names no
// files at all.
func TestCodeInNoFile(t *testing.T) {
	made := testprofile.Shop(1)
	inner, outer := &profile.Location{ID: 98, Address: 0x9800}, &profile.Location{ID: 99, Address: 0x9900}
	made.Location = append(made.Location, inner, outer)
	made.Sample = []*profile.Sample{
		{Location: []*profile.Location{inner, outer}, Value: []int64{1, 64}},
		{Location: []*profile.Location{outer}, Value: []int64{1, 64}},
	}
	set, err := Select(made, Selection{})
	if err != nil || len(set.Stacks) != 1 || len(set.Stacks[0].Frames) != 1 || set.Stacks[0].Frames[0].Name != noFile {
		t.Errorf("%+v %v", set, err)
	}
	made.Mapping = nil
	set, err = Select(made, Selection{})
	if err != nil || len(set.Stacks) != 2 || set.Stacks[0].Frames[1].Name != "0x9800" {
		t.Errorf("%+v %v", set, err)
	}
}

func TestSelection(t *testing.T) {
	for _, one := range []struct {
		selection Selection
		want      int64
	}{
		{Selection{Type: "inuse_objects"}, 124},
		{Selection{Type: "inuse_objects", Focus: regexp.MustCompile("store::")}, 100},
		{Selection{Type: "inuse_objects", Ignore: regexp.MustCompile("store::")}, 24},
		{Selection{Type: "inuse_objects", Focus: regexp.MustCompile("Serve$"), Ignore: regexp.MustCompile("Parse")}, 100},
	} {
		if _, total := shop(t, 1, one.selection).Total(); total.Amount != one.want {
			t.Errorf("%+v: %d, want %d", one.selection, total.Amount, one.want)
		}
	}
	if set := shop(t, 1, Selection{Lines: true}); set.Stacks[0].Frames[0].Name != "main:10" {
		t.Errorf("%+v", set.Stacks[0])
	}
	for _, selection := range []Selection{{Type: "nonsense"}, {Focus: regexp.MustCompile("nonsense")}} {
		if _, err := Select(testprofile.Shop(1), selection); err == nil {
			t.Errorf("%+v is taken", selection)
		}
	}
	other := shop(t, 1, Selection{Type: "inuse_objects"})
	if _, err := Compare(other, shop(t, 1, Selection{})); err == nil {
		t.Error("objects are compared with bytes")
	}
}

func TestNoStack(t *testing.T) {
	made := testprofile.Shop(1)
	made.Sample = append(made.Sample, &profile.Sample{Value: []int64{1, 8 << 20}})
	set, err := Select(made, Selection{})
	if err != nil {
		t.Fatal(err)
	}
	var folded bytes.Buffer
	if err := set.WriteFolded(&folded); err != nil || !strings.HasPrefix(folded.String(), "(no stack) 8388608\n") {
		t.Errorf("%v: %s", err, folded.String())
	}
	sum := int64(0)
	for _, one := range set.Functions(false) {
		sum += one.Flat
	}
	if _, total := set.Total(); sum != total.Amount {
		t.Errorf("the rows of the table are %d of %d bytes", sum, total.Amount)
	}
}
