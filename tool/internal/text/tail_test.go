// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package text

import "testing"

func TestTail(t *testing.T) {
	said := Tail{Size: 100}
	for range 1000 {
		if _, err := said.Write([]byte("a line of some length\n")); err != nil {
			t.Fatal(err)
		}
	}
	if kept := len(said.String()); kept < said.Size || kept > 2*said.Size {
		t.Errorf("keeps %d bytes", kept)
	}
	if _, err := said.Write([]byte("one\ntwo\nthree\n")); err != nil {
		t.Fatal(err)
	}
	if got := LastLines(said.String(), 3); got != "one | two | three" {
		t.Errorf("%q", got)
	}
	if got := said.LastLine(); got != "three" {
		t.Errorf("%q", got)
	}
	if got := LastLines(" \n", 3); got != "" {
		t.Errorf("%q", got)
	}
}
