// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package testprofile makes profiles for tests.
package testprofile

import "github.com/google/pprof/profile"

// Shop returns the profile of a made-up program: four stacks, one of them recursive. The cache
// holds `load` times as much as at first.
func Shop(load int64) *profile.Profile {
	made := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_objects", Unit: "count"}, {Type: "inuse_space", Unit: "bytes"}},
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
		Period:     512 << 10,
		DropFrames: "operator new",
		Mapping: []*profile.Mapping{{ID: 1, Start: 0x400000, Limit: 0x500000, File: "/opt/shop", HasFunctions: true},
			{ID: 2, Start: 0x7f0000000000, Limit: 0x7f0000100000, File: "/usr/lib/libstore.so.1", HasFunctions: true}},
	}
	locations := map[string]*profile.Location{}
	at := func(name string, mapping int) *profile.Location {
		if locations[name] == nil {
			function := &profile.Function{ID: uint64(len(made.Function) + 1), Name: name, SystemName: name, Filename: "/src/shop.cc"}
			made.Function = append(made.Function, function)
			locations[name] = &profile.Location{ID: function.ID, Mapping: made.Mapping[mapping], Address: made.Mapping[mapping].Start + 16*function.ID,
				Line: []profile.Line{{Function: function, Line: int64(10 * function.ID)}}}
			made.Location = append(made.Location, locations[name])
		}
		return locations[name]
	}
	start, serve, walk := at("main", 0), at("Server<Request>::Serve", 0), at("Walk", 0)
	insert, parse, allocate := at("store::Insert", 1), at("Parse & \"Check\"", 0), at("operator new", 1)
	add := func(objects, bytes int64, leafFirst ...*profile.Location) {
		made.Sample = append(made.Sample, &profile.Sample{Location: leafFirst, Value: []int64{objects, bytes}})
	}
	add(100*load, 6<<20*load, allocate, insert, serve, start)
	add(20, 1<<20, allocate, parse, serve, start)
	add(3, 512<<10, allocate, walk, walk, walk, start)
	add(1, 4096, allocate, start)
	return made
}
