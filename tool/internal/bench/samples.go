// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
)

// SamplesName is the file of a benchmark from which everything else can be made again.
const SamplesName = "samples.json"

// columns are the numbers of a run, in the order in which the file has them.
var columns = []struct {
	name string
	of   func(*Sample) *float64
}{
	{"seconds", func(s *Sample) *float64 { return &s.Seconds }},
	{"cpu_seconds", func(s *Sample) *float64 { return &s.CPUSeconds }},
	{"wall_seconds", func(s *Sample) *float64 { return &s.WallSeconds }},
	{"ops", func(s *Sample) *float64 { return &s.Ops }},
	{"peak_resident_bytes", func(s *Sample) *float64 { return &s.PeakResident }},
	{"average_resident_bytes", func(s *Sample) *float64 { return &s.AverageResident }},
	{"page_faults", func(s *Sample) *float64 { return &s.Faults }},
	{"others_cpus", func(s *Sample) *float64 { return &s.Noise.Others }},
	{"stolen_cpus", func(s *Sample) *float64 { return &s.Noise.Stolen }},
}

// series is a cell: a row for each run, with round, repeats and the columns, or with round and
// failure; and for each further number that the workload reported its values by runs.
type series struct {
	Allocator string                `json:"allocator"`
	Runs      [][]any               `json:"runs"`
	Extra     map[string][]*float64 `json:"extra,omitempty"`
}

// WriteSamples writes the samples with one line for each cell; ratios and means follow from them.
func (r *Results) WriteSamples(output io.Writer) error {
	var out bytes.Buffer
	names := []string{"round", "repeats"}
	for _, column := range columns {
		names = append(names, column.name)
	}
	out.WriteString("{\n")
	for _, member := range []struct {
		name  string
		value any
	}{
		{"started", r.Started}, {"seconds", r.Seconds}, {"complete", r.Complete}, {"machine", r.Machine},
		{"quiet_before", r.QuietFirst}, {"settings", r.Settings}, {"variables", r.Variables}, {"differences", r.Differences}, {"allocators", r.Allocators}, {"columns", names},
	} {
		fmt.Fprintf(&out, "%q: ", member.name)
		if err := encode(&out, member.value); err != nil {
			return err
		}
		out.WriteString(",\n")
	}
	out.WriteString("\"workloads\": [")
	for i, workload := range r.Workloads {
		separate(&out, i)
		out.WriteString("{\"workload\": ")
		if err := encode(&out, workload.Workload); err != nil {
			return err
		}
		out.WriteString(", \"cells\": [")
		for j := range workload.Cells {
			separate(&out, j)
			if err := encode(&out, newSeries(&workload.Cells[j])); err != nil {
				return err
			}
		}
		out.WriteString("\n]}")
	}
	out.WriteString("\n]}\n")
	_, err := output.Write(out.Bytes())
	return err
}

func separate(out *bytes.Buffer, index int) {
	if index > 0 {
		out.WriteByte(',')
	}
	out.WriteByte('\n')
}

// encode writes a value on the current line.
func encode(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	out.Truncate(len(bytes.TrimRight(out.Bytes(), "\n")))
	return err
}

func newSeries(cell *Cell) series {
	made := series{Allocator: cell.Allocator, Runs: [][]any{}}
	for i := range cell.Samples {
		sample := &cell.Samples[i]
		if sample.Failure != "" {
			made.Runs = append(made.Runs, []any{sample.Round, sample.Failure})
			continue
		}
		run := []any{sample.Round, sample.Repeats}
		for _, column := range columns {
			run = append(run, rounded(*column.of(sample)))
		}
		made.Runs = append(made.Runs, run)
		for name, value := range sample.Extra {
			if made.Extra == nil {
				made.Extra = map[string][]*float64{}
			}
			if made.Extra[name] == nil {
				made.Extra[name] = make([]*float64, len(cell.Samples))
			}
			made.Extra[name][i] = &value
		}
	}
	return made
}

// rounded keeps the nanoseconds of a time and whole numbers.
func rounded(value float64) float64 { return math.Round(value*1e9) / 1e9 }

// readSamples reads what WriteSamples wrote.
func readSamples(path string) (*Results, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	read := struct {
		*Results
		Workloads []struct {
			Workload Workload `json:"workload"`
			Cells    []series `json:"cells"`
		} `json:"workloads"`
	}{Results: &Results{}}
	if err := json.Unmarshal(data, &read); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, one := range read.Workloads {
		made := WorkloadResult{Workload: one.Workload}
		for _, line := range one.Cells {
			cell, err := line.cell()
			if err != nil {
				return nil, fmt.Errorf("%s: %s under %s: %w", path, one.Workload.Name, line.Allocator, err)
			}
			made.Cells = append(made.Cells, cell)
		}
		read.Results.Workloads = append(read.Results.Workloads, made)
	}
	return read.Results, nil
}

func (s series) cell() (Cell, error) {
	cell := Cell{Allocator: s.Allocator}
	for i, run := range s.Runs {
		sample, err := sampleOf(run)
		if err != nil {
			return cell, err
		}
		for name, values := range s.Extra {
			if i < len(values) && values[i] != nil {
				if sample.Extra == nil {
					sample.Extra = map[string]float64{}
				}
				sample.Extra[name] = *values[i]
			}
		}
		cell.Samples = append(cell.Samples, sample)
	}
	return cell, nil
}

func sampleOf(run []any) (Sample, error) {
	var sample Sample
	if len(run) == 2 {
		round, isNumber := run[0].(float64)
		failure, isText := run[1].(string)
		if isNumber && isText {
			return Sample{Round: int(round), Failure: failure}, nil
		}
	}
	if len(run) != 2+len(columns) {
		return sample, fmt.Errorf("a run has %d numbers instead of %d", len(run), 2+len(columns))
	}
	numbers := make([]float64, len(run))
	for i, value := range run {
		number, isNumber := value.(float64)
		if !isNumber {
			return sample, fmt.Errorf("%v is no number", value)
		}
		numbers[i] = number
	}
	sample.Round, sample.Repeats = int(numbers[0]), int(numbers[1])
	for i, column := range columns {
		*column.of(&sample) = numbers[2+i]
	}
	return sample, nil
}
