// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"
)

func TestParseBusy(t *testing.T) {
	busy, err := parseBusy("cpu  100 10 50 9999 77 3 2 40 0 0")
	if err != nil {
		t.Fatal(err)
	}
	if busy.Work != 1650*time.Millisecond || busy.Stolen != 400*time.Millisecond {
		t.Errorf("%+v", busy)
	}
	for _, line := range []string{"", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 x 4 5 6 7 8 9"} {
		if _, err := parseBusy(line); err == nil {
			t.Errorf("%q is taken", line)
		}
	}
}

func TestNoise(t *testing.T) {
	before := Busy{Work: 10 * time.Second}
	after := Busy{Work: 12 * time.Second, Stolen: time.Second}
	noise := NoiseBetween(before, after, time.Second, 2*time.Second)
	if !near(noise.Others, 0.485) || !near(noise.Stolen, 0.485) {
		t.Errorf("%+v", noise)
	}
	if noise.IsQuiet() {
		t.Error("half a CPU of others is quiet")
	}
	// A difference that the counters cannot resolve is no noise.
	noise = NoiseBetween(before, Busy{Work: 11*time.Second + 20*time.Millisecond}, time.Second, time.Second)
	if noise != (Noise{}) || !noise.IsQuiet() {
		t.Errorf("%+v", noise)
	}
}
