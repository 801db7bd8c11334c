// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Cost is what a part of a program did under callgrind. Near and Far count data accesses that missed
// the first and the last simulated level; a level is of caches or of TLBs.
type Cost struct {
	Instructions float64
	Accesses     float64
	Near         float64
	Far          float64
	// Code counts instructions that were not in the first level.
	Code float64
}

func (c *Cost) add(other Cost) {
	c.Instructions += other.Instructions
	c.Accesses += other.Accesses
	c.Near += other.Near
	c.Far += other.Far
	c.Code += other.Code
}

// Function is one of a program or of a library.
type Function struct {
	Name string
	// Object is the path of the file that has it.
	Object string
}

// Edge is a pair of functions of which one calls, or jumps to, the other.
type Edge struct{ Caller, Callee Function }

// Calls are those along an edge.
type Calls struct {
	Count float64
	// Instructions includes all that the callee calls.
	Instructions float64
}

// Profile is what callgrind found about a program and its children.
type Profile struct {
	Self  map[Function]Cost
	Calls map[Edge]Calls
}

// NewProfile returns an empty profile.
func NewProfile() *Profile {
	return &Profile{Self: map[Function]Cost{}, Calls: map[Edge]Calls{}}
}

// Total sums all functions.
func (p *Profile) Total() Cost {
	var total Cost
	for _, cost := range p.Self {
		total.add(cost)
	}
	return total
}

// ReadProfiles adds up the files that fit a pattern, one for each process.
func ReadProfiles(pattern string) (*Profile, error) {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("callgrind wrote no profile")
	}
	profile := NewProfile()
	for _, path := range paths {
		if err := profile.addFile(path); err != nil {
			return nil, err
		}
	}
	return profile, nil
}

func (p *Profile) addFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := p.Add(file); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Add adds a profile in the format of callgrind.
func (p *Profile) Add(input io.Reader) error {
	reader := reader{profile: p, objects: names{}, functions: names{}}
	scanner := bufio.NewScanner(input)
	scanner.Buffer(nil, 1<<20)
	for number := 1; scanner.Scan(); number++ {
		if err := reader.line(scanner.Text()); err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return err
	}
	if reader.events == nil {
		return errors.New("no profile of callgrind: it names no events")
	}
	return nil
}

// names resolves the compressed form "(number) name", whose name is given the first time only.
type names map[string]string

func (n names) resolve(word string) string {
	if !strings.HasPrefix(word, "(") {
		return word
	}
	number, name, isNew := strings.Cut(word, ") ")
	if !isNew {
		return n[strings.TrimSuffix(word, ")")]
	}
	n[number] = name
	return name
}

// eventFields are the events that callgrind may count, and where they go.
var eventFields = map[string]func(*Cost) *float64{
	"Ir":   func(c *Cost) *float64 { return &c.Instructions },
	"Dr":   func(c *Cost) *float64 { return &c.Accesses },
	"Dw":   func(c *Cost) *float64 { return &c.Accesses },
	"I1mr": func(c *Cost) *float64 { return &c.Code },
	"D1mr": func(c *Cost) *float64 { return &c.Near },
	"D1mw": func(c *Cost) *float64 { return &c.Near },
	"DLmr": func(c *Cost) *float64 { return &c.Far },
	"DLmw": func(c *Cost) *float64 { return &c.Far },
}

// reader holds what later lines of a profile refer to.
type reader struct {
	profile   *Profile
	objects   names
	functions names
	events    []string
	// current is the function whose costs follow, callee the one that the next call is to.
	current, callee Function
	calleeObject    string
	// calls is above 0 where the next line of costs is that of so many calls.
	calls float64
}

func (r *reader) line(line string) error {
	key, value, found := strings.Cut(line, "=")
	switch {
	case found && key == "ob":
		r.current.Object = r.objects.resolve(value)
	case found && key == "fn":
		r.current.Name = plainName(r.functions.resolve(value))
	case found && key == "cob":
		r.calleeObject = r.objects.resolve(value)
	case found && key == "cfn":
		r.callee = Function{Name: plainName(r.functions.resolve(value)), Object: r.current.Object}
	case found && key == "calls":
		return r.announce(value)
	case strings.HasPrefix(line, "events:"):
		r.events = strings.Fields(strings.TrimPrefix(line, "events:"))
	case line != "" && strings.ContainsRune("0123456789+-*", rune(line[0])):
		return r.costs(strings.Fields(line)[1:])
	}
	return nil
}

func (r *reader) announce(value string) error {
	count, _, _ := strings.Cut(value, " ")
	calls, err := strconv.ParseFloat(count, 64)
	if err != nil {
		return fmt.Errorf("%q is no number of calls", count)
	}
	r.calls = calls
	if r.calleeObject != "" {
		r.callee.Object = r.calleeObject
	}
	return nil
}

// costs takes the numbers of a line, trailing zeros of which may be missing.
func (r *reader) costs(words []string) error {
	if len(words) > len(r.events) {
		return fmt.Errorf("%d numbers for %d events", len(words), len(r.events))
	}
	var cost Cost
	for i, word := range words {
		value, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return fmt.Errorf("%q is no number", word)
		}
		if field, known := eventFields[r.events[i]]; known {
			*field(&cost) += value
		}
	}
	if r.calls > 0 {
		edge := Edge{Caller: r.current, Callee: r.callee}
		sum := r.profile.Calls[edge]
		sum.Count += r.calls
		sum.Instructions += cost.Instructions
		r.profile.Calls[edge] = sum
		r.calls, r.calleeObject = 0, ""
		return nil
	}
	sum := r.profile.Self[r.current]
	sum.add(cost)
	r.profile.Self[r.current] = sum
	return nil
}

// cloneOrCycle is what compilers and callgrind append to names.
var cloneOrCycle = regexp.MustCompile(` \[clone [^\]]*\]|'\d+$`)

func plainName(name string) string { return cloneOrCycle.ReplaceAllString(name, "") }
