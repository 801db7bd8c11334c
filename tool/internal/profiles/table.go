// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package profiles

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"tcm/internal/text"
)

// Function is one function with what it and those that it called hold.
type Function struct {
	Name   string `json:"name"`
	File   string `json:"file,omitempty"`
	Object string `json:"object,omitempty"`
	// Flat is what the function itself asked for; cumulative includes what those that it called did.
	Flat              int64 `json:"flat"`
	FlatObjects       int64 `json:"flat_objects"`
	Cumulative        int64 `json:"cumulative"`
	CumulativeObjects int64 `json:"cumulative_objects"`
	// The older profile's figures, where two are compared.
	OldFlat       *int64 `json:"old_flat,omitempty"`
	OldCumulative *int64 `json:"old_cumulative,omitempty"`
}

// FlatChange is the whole amount where nothing is compared.
func (f *Function) FlatChange() int64 { return change(f.Flat, f.OldFlat) }

// CumulativeChange is the whole amount where nothing is compared.
func (f *Function) CumulativeChange() int64 { return change(f.Cumulative, f.OldCumulative) }

func change(after int64, before *int64) int64 {
	if before == nil {
		return after
	}
	return after - *before
}

// Functions adds up the stacks by function, the largest first: by what they hold themselves, or with
// what they called.
func (s *Set) Functions(byCumulative bool) []Function {
	type key struct{ name, object string }
	places := map[key]int{}
	var made []Function
	at := func(frame Frame) *Function {
		place, found := places[key{frame.Name, frame.Object}]
		if !found {
			place = len(made)
			places[key{frame.Name, frame.Object}] = place
			one := Function{Name: frame.Name, File: frame.File, Object: frame.Object}
			if s.Compared {
				one.OldFlat, one.OldCumulative = new(int64), new(int64)
			}
			made = append(made, one)
		}
		return &made[place]
	}
	for _, stack := range s.Stacks {
		for i, frame := range stack.Frames {
			one := at(frame)
			// A recursive function counts once in each stack.
			again := slices.ContainsFunc(stack.Frames[:i], func(other Frame) bool {
				return other.Name == frame.Name && other.Object == frame.Object
			})
			if !again {
				one.addCumulative(stack)
			}
			if i == len(stack.Frames)-1 {
				one.addFlat(stack)
			}
		}
	}
	sortFunctions(made, byCumulative)
	return made
}

func (f *Function) addCumulative(stack Stack) {
	f.Cumulative += stack.New.Amount
	f.CumulativeObjects += stack.New.Objects
	if f.OldCumulative != nil {
		*f.OldCumulative += stack.Old.Amount
	}
}

func (f *Function) addFlat(stack Stack) {
	f.Flat += stack.New.Amount
	f.FlatObjects += stack.New.Objects
	if f.OldFlat != nil {
		*f.OldFlat += stack.Old.Amount
	}
}

func sortFunctions(all []Function, byCumulative bool) {
	sort.Slice(all, func(i, j int) bool {
		first, second := [2]int64{magnitude(all[i].FlatChange()), magnitude(all[i].CumulativeChange())},
			[2]int64{magnitude(all[j].FlatChange()), magnitude(all[j].CumulativeChange())}
		if byCumulative {
			first[0], first[1], second[0], second[1] = first[1], first[0], second[1], second[0]
		}
		if first != second {
			return first[0] > second[0] || first[0] == second[0] && first[1] > second[1]
		}
		return all[i].Name < all[j].Name
	})
}

func magnitude(value int64) int64 { return max(value, -value) }

// Format writes an amount in a unit of profiles.
func Format(amount int64, unit string) string {
	switch unit {
	case "bytes":
		return text.Bytes(amount)
	case "nanoseconds":
		return text.Seconds(float64(amount) / float64(time.Second))
	case "microseconds":
		return text.Seconds(float64(amount) / 1e6)
	case "milliseconds":
		return text.Seconds(float64(amount) / 1e3)
	case "seconds":
		return text.Seconds(float64(amount))
	default:
		return text.Count(amount)
	}
}

// FormatChange writes an amount with its sign.
func FormatChange(amount int64, unit string) string {
	if amount > 0 {
		return "+" + Format(amount, unit)
	}
	return Format(amount, unit)
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// Title says in a line what the set holds.
func (s *Set) Title() string {
	before, after := s.Total()
	if s.Compared {
		growth := after.Minus(before)
		title := fmt.Sprintf("%s: %s, from %s to %s", s.Type, FormatChange(growth.Amount, s.Unit), Format(before.Amount, s.Unit), Format(after.Amount, s.Unit))
		if s.ObjectsType != "" {
			title += fmt.Sprintf("; %s objects", FormatChange(growth.Objects, "count"))
		}
		return title
	}
	title := fmt.Sprintf("%s: %s", s.Type, Format(after.Amount, s.Unit))
	if s.isZero() {
		return title + ": no stack of the profile has any"
	}
	if s.ObjectsType != "" {
		title += fmt.Sprintf(" in %s objects", text.Count(after.Objects))
	}
	if s.Period > 1 && s.Unit == "bytes" {
		title += fmt.Sprintf(", estimated from samples every %s", text.Bytes(s.Period))
	}
	return title
}

// isZero returns true if there are stacks, all of which have nothing of this type.
func (s *Set) isZero() bool {
	return len(s.Stacks) > 0 && !slices.ContainsFunc(s.Stacks, func(one Stack) bool { return one.Old.Amount != 0 || one.New.Amount != 0 })
}

// WriteTable prints the first functions; most is how many, or 0 for all. What a terminal would obey in a name is replaced.
func (s *Set) WriteTable(output io.Writer, byCumulative bool, most int) error {
	all := s.Functions(byCumulative)
	shown := all
	if s.Compared {
		shown = slices.DeleteFunc(slices.Clone(all), func(one Function) bool {
			return one.FlatChange() == 0 && one.CumulativeChange() == 0
		})
	}
	if s.isZero() {
		shown = nil
	}
	left := 0
	if most > 0 && len(shown) > most {
		left = len(shown) - most
		shown = shown[:most]
	}
	rows := s.heapRows(shown)
	if s.Compared {
		rows = s.diffRows(shown)
	}
	var out strings.Builder
	fmt.Fprintln(&out, s.Title())
	if len(shown) > 0 {
		writeColumns(&out, rows)
	}
	if left > 0 {
		fmt.Fprintf(&out, "%s more functions; --top 0 shows all\n", text.Count(int64(left)))
	}
	_, err := io.WriteString(text.NewPrintable(output), out.String())
	return err
}

func (s *Set) heapRows(functions []Function) [][]string {
	_, total := s.Total()
	rows := [][]string{{"flat", "flat%", "sum%", "cum", "cum%", "objects", "function"}}
	if s.ObjectsType == "" {
		rows[0] = slices.Delete(rows[0], 5, 6)
	}
	sum := int64(0)
	for _, one := range functions {
		sum += one.Flat
		row := []string{Format(one.Flat, s.Unit), percent(one.Flat, total.Amount), percent(sum, total.Amount),
			Format(one.Cumulative, s.Unit), percent(one.Cumulative, total.Amount)}
		if s.ObjectsType != "" {
			row = append(row, text.Count(one.FlatObjects))
		}
		rows = append(rows, append(row, label(one)))
	}
	return rows
}

func (s *Set) diffRows(functions []Function) [][]string {
	rows := [][]string{{"flat change", "cum change", "old cum", "new cum", "function"}}
	for _, one := range functions {
		rows = append(rows, []string{FormatChange(one.FlatChange(), s.Unit), FormatChange(one.CumulativeChange(), s.Unit),
			Format(*one.OldCumulative, s.Unit), Format(one.Cumulative, s.Unit), label(one)})
	}
	return rows
}

// label is the function with the library it is in, unless its name has that already.
func label(of Function) string {
	if of.Object == "" || strings.HasPrefix(of.Name, of.Object+"+") {
		return of.Name
	}
	return fmt.Sprintf("%s (%s)", of.Name, of.Object)
}

// writeColumns aligns all columns but the last to the right.
func writeColumns(out *strings.Builder, rows [][]string) {
	last := len(rows[0]) - 1
	widths := make([]int, last)
	for _, row := range rows {
		for i := range last {
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	for _, row := range rows {
		for i := range last {
			fmt.Fprintf(out, "%*s  ", widths[i], row[i])
		}
		fmt.Fprintln(out, row[last])
	}
}

// Report is the JSON of a set.
type Report struct {
	Type            string     `json:"type"`
	Unit            string     `json:"unit"`
	SamplePeriod    int64      `json:"sample_period,omitempty"`
	Total           int64      `json:"total"`
	TotalObjects    int64      `json:"total_objects"`
	OldTotal        *int64     `json:"old_total,omitempty"`
	OldTotalObjects *int64     `json:"old_total_objects,omitempty"`
	Functions       []Function `json:"functions"`
}

// Report returns the first functions for JSON; most is how many, or 0 for all.
func (s *Set) Report(byCumulative bool, most int) Report {
	before, after := s.Total()
	made := Report{Type: s.Type, Unit: s.Unit, SamplePeriod: s.Period, Total: after.Amount, TotalObjects: after.Objects, Functions: s.Functions(byCumulative)}
	if s.Compared {
		made.OldTotal, made.OldTotalObjects = &before.Amount, &before.Objects
	}
	if most > 0 && len(made.Functions) > most {
		made.Functions = made.Functions[:most]
	}
	if made.Functions == nil {
		made.Functions = []Function{}
	}
	return made
}

// foldedName keeps separators of the folded format out of names.
var foldedName = strings.NewReplacer(";", ",", "\n", " ")

// WriteFolded prints one line for each stack: its functions, the outermost first, and its amount; both
// amounts where two profiles are compared. What a terminal would obey in a name is replaced.
func (s *Set) WriteFolded(output io.Writer) error {
	var lines []string
	for _, stack := range s.Stacks {
		names := make([]string, len(stack.Frames))
		for i, frame := range stack.Frames {
			names[i] = foldedName.Replace(frame.Name)
		}
		line := fmt.Sprintf("%s %d", strings.Join(names, ";"), stack.New.Amount)
		if s.Compared {
			line = fmt.Sprintf("%s %d %d", strings.Join(names, ";"), stack.Old.Amount, stack.New.Amount)
		}
		lines = append(lines, line)
	}
	sort.Strings(lines)
	shown := text.NewPrintable(output)
	for _, line := range lines {
		if _, err := fmt.Fprintln(shown, line); err != nil {
			return err
		}
	}
	return nil
}
