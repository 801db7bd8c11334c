// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package peers

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestManifestOfTheProject(t *testing.T) {
	data, err := os.ReadFile("../../../bench/peers/peers.json")
	if err != nil {
		t.Fatal(err)
	}
	set, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range set.Peers {
		if peer.Title == "" || peer.Version == "" || peer.How == "" {
			t.Errorf("%s lacks a title, a version or how it is made", peer.Name)
		}
		if peer.Kind != kindCargo {
			continue
		}
		for _, name := range []string{"Cargo.toml", "Cargo.lock"} {
			if _, err := os.Stat("../../../bench/peers/" + peer.Name + "/" + name); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestListOfNames(t *testing.T) {
	set := &Set{Peers: []Peer{{Name: "a", Libraries: []string{"l"}}, {Name: "b", Libraries: []string{"l"}}}}
	for want, names := range map[string][]string{"a b ": nil, "b ": {"b"}} {
		statuses, err := set.List(names)
		got := ""
		for _, status := range statuses {
			got += status.Name + " "
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", names, got, err)
		}
	}
	if _, err := set.List([]string{"c"}); err == nil || err.Error() != `no peer is called "c"` {
		t.Errorf("%v", err)
	}
}

func TestManifestRefuses(t *testing.T) {
	for _, data := range []string{
		`[]`,
		`{"peers":[{"name":"a","kind":"debian","package":"p"}]}`,
		`{"peers":[{"name":"a","kind":"debian","libraries":["l"]}]}`,
		`{"peers":[{"name":"a","kind":"cargo","libraries":["l"],"crate":"c"}]}`,
		`{"peers":[{"name":"a","kind":"cargo","libraries":["l"],"crate":"c","archive":"x","cmake":{}}]}`,
		`{"peers":[{"name":"a","kind":"same","libraries":["l"],"same_as":"b"}]}`,
		`{"peers":[{"name":"a","kind":"new","libraries":["l"]}]}`,
		`{"peers":[{"name":"a/b","kind":"debian","package":"p","libraries":["l"]}]}`,
		`{"peers":[{"name":"a","kind":"debian","package":"p","libraries":["l"]},{"name":"a","kind":"debian","package":"p","libraries":["l"]}]}`,
	} {
		if _, err := parse([]byte(data)); err == nil {
			t.Errorf("%s is taken", data)
		}
	}
}

func TestOutputFolder(t *testing.T) {
	messages := `{"reason":"compiler-artifact","package_id":"registry+x#cc@1.0.0"}
{"reason":"build-script-executed","package_id":"registry+x#other-sys@1.0.0","out_dir":"/wrong"}
not JSON
{"reason":"build-script-executed","package_id":"registry+x#some-sys@0.1.2","out_dir":"/right"}
`
	if got, err := outputFolder(strings.NewReader(messages), "some-sys"); err != nil || got != "/right" {
		t.Errorf("%q, %v", got, err)
	}
	old := `{"reason":"build-script-executed","package_id":"some-sys 0.1.2 (registry+x)","out_dir":"/old"}`
	if got, err := outputFolder(strings.NewReader(old), "some-sys"); err != nil || got != "/old" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := outputFolder(strings.NewReader(messages), "sys"); err == nil {
		t.Errorf("%q", got)
	}
}

func TestJudge(t *testing.T) {
	libraries := []string{"libpeer.so"}
	serve := func(changes ...string) map[string]string {
		servers := map[string]string{misalignedKey: "", "_ZdlPvm": "/x/libpeer.so"}
		for _, name := range required {
			servers[name] = "/x/libpeer.so"
		}
		for i := 0; i < len(changes); i += 2 {
			servers[changes[i]] = changes[i+1]
		}
		return servers
	}
	if notes, err := judge(serve(), libraries); err != nil || len(notes) != 0 {
		t.Errorf("%q, %v", notes, err)
	}
	if notes, err := judge(serve("_ZdlPvm", "/lib/libstdc++.so.6", misalignedKey, "memalign"), libraries); err != nil || len(notes) != 2 {
		t.Errorf("%q, %v", notes, err)
	}
	for _, servers := range []map[string]string{
		serve("malloc", "/lib/libc.so.6"),
		serve("_Znwm", "/lib/libstdc++.so.6"),
		serve("_ZdlPvm", "/lib/libc.so.6"),
		serve("free", ""),
	} {
		if notes, err := judge(servers, libraries); err == nil {
			t.Errorf("passes: %q", notes)
		}
	}
}

func TestMissingFrom(t *testing.T) {
	defined := map[string]bool{}
	for _, name := range required[1:] {
		defined[name] = true
	}
	if got := missingFrom(defined); len(got) != 1 || got[0] != required[0] {
		t.Errorf("%q", got)
	}
}

func TestStepThatIsCalledOffEndsItsChildren(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- runTo(ctx, writer, io.Discard, "", nil, "sh", "-c", "sleep 100 & echo; wait")
	}()
	const limit = 30 * time.Second
	if err := reader.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a step that was called off is done")
	}
	writer.Close()
	if count, err := reader.Read(make([]byte, 1)); count != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a child lives on: %d, %v", count, err)
	}
}

// written counts what is written and says when something was.
type written chan string

func (w written) Write(data []byte) (int, error) {
	w <- string(data)
	return len(data), nil
}

func TestSignOfLife(t *testing.T) {
	output := make(written)
	stop := signOfLife(output, time.Millisecond)
	for range 3 {
		if dot := <-output; dot != "." {
			t.Errorf("%q", dot)
		}
	}
	go func() {
		for range output {
		}
	}()
	stop()
	close(output)
}

func TestPackageWithoutFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	t.Setenv("TMPDIR", missing)
	err := (&Set{}).fromDebian(context.Background(), Peer{Package: "tcm-no-such-package"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "tcm-no-such-package in "+missing+": ") || !strings.Contains(err.Error(), "TMPDIR") {
		t.Error(err)
	}
}
