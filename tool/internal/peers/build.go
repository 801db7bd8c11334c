// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"tcm/internal/launch"
	"tcm/internal/temporary"
	"tcm/internal/text"
)

// Status is what became of a peer.
type Status struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Version   string   `json:"version"`
	Kind      string   `json:"kind"`
	How       string   `json:"how"`
	Works     bool     `json:"works"`
	Libraries []string `json:"libraries"`
	// Reason says why a peer does not work.
	Reason string `json:"reason,omitempty"`
	// Notes are findings about a peer that works.
	Notes   []string `json:"notes,omitempty"`
	Seconds float64  `json:"seconds"`
}

// Options of Build.
type Options struct {
	// Only names the peers to build; all if empty.
	Only []string
	// Force builds what is up to date as well.
	Force bool
	// Progress gets a line for each step.
	Progress io.Writer
}

// stamp is the content of a peer's stamp file.
type stamp struct {
	Inputs string   `json:"inputs"`
	Notes  []string `json:"notes,omitempty"`
}

// Build builds the peers that are not up to date. A peer that cannot be built does not stop the
// others: its status tells the reason.
func (s *Set) Build(ctx context.Context, options Options) ([]Status, error) {
	chosen, err := s.choose(options.Only)
	if err != nil {
		return nil, err
	}
	statuses := make([]Status, 0, len(chosen))
	for i, peer := range chosen {
		fmt.Fprintf(options.Progress, "[%d/%d] %s ", i+1, len(chosen), peer.Name)
		start := time.Now()
		stop := signOfLife(options.Progress, signOfLifeEvery)
		status := s.buildOne(ctx, peer, options.Force)
		stop()
		status.Seconds = time.Since(start).Seconds()
		switch {
		case ctx.Err() != nil:
			fmt.Fprintln(options.Progress, "interrupted")
			return statuses, ctx.Err()
		case status.Works:
			fmt.Fprintf(options.Progress, "works (%.0f s)\n", status.Seconds)
		default:
			fmt.Fprintf(options.Progress, "failed (%.0f s)\n", status.Seconds)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// signOfLifeEvery is the time between two dots: some peers build for ten minutes.
const signOfLifeEvery = 5 * time.Second

// signOfLife writes a dot now and then until the function that it returns is called.
func signOfLife(output io.Writer, every time.Duration) func() {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprint(output, ".")
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// List returns the named peers, or all, as they are, without building any.
func (s *Set) List(names []string) ([]Status, error) {
	chosen, err := s.choose(names)
	if err != nil {
		return nil, err
	}
	statuses := make([]Status, 0, len(chosen))
	for _, peer := range chosen {
		status := s.describe(peer)
		status.Works = s.IsBuilt(peer)
		if status.Works {
			status.Notes = s.readStamp(peer).Notes
		} else {
			status.Reason = "not built: run tcm peers"
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

func (s *Set) describe(peer Peer) Status {
	return Status{
		Name: peer.Name, Title: peer.Title, Version: peer.Version, Kind: peer.Kind, How: peer.How,
		Libraries: s.Paths(peer),
	}
}

func (s *Set) choose(names []string) ([]Peer, error) {
	if len(names) == 0 {
		return s.Peers, nil
	}
	var chosen []Peer
	for _, name := range names {
		found := false
		for _, peer := range s.Peers {
			if peer.Name == name {
				chosen = append(chosen, peer)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("no peer is called %q", name)
		}
	}
	return chosen, nil
}

func (s *Set) buildOne(ctx context.Context, peer Peer, force bool) Status {
	status := s.describe(peer)
	inputs, err := s.inputs(peer)
	if err != nil {
		status.Reason = err.Error()
		return status
	}
	if old := s.readStamp(peer); !force && s.IsBuilt(peer) && old.Inputs == inputs {
		status.Works = true
		status.Notes = old.Notes
		return status
	}
	// The stamp of what is about to be replaced must not outlive it.
	os.Remove(s.stampPath(peer))
	notes, err := s.make(ctx, peer)
	if err == nil {
		err = s.writeStamp(peer, stamp{Inputs: inputs, Notes: notes})
	}
	if err != nil {
		status.Reason = err.Error()
		return status
	}
	status.Works = true
	status.Notes = notes
	return status
}

// make builds a peer and checks it.
func (s *Set) make(ctx context.Context, peer Peer) ([]string, error) {
	log, err := s.openLog(peer)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	for _, path := range s.Paths(peer) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
	}
	switch peer.Kind {
	case kindDebian:
		err = s.fromDebian(ctx, peer, log)
	case kindCargo:
		err = s.fromCrate(ctx, peer, log)
	case kindSame:
		if !s.IsBuilt(Peer{Name: peer.SameAs, Libraries: peer.Libraries}) {
			err = fmt.Errorf("needs %s, which is not built", peer.SameAs)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.verify(ctx, peer)
}

func (s *Set) openLog(peer Peer) (*os.File, error) {
	path := filepath.Join(s.checkout.PeerBuild(), "log", peer.Name+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.Create(path)
}

// inputs is a digest of everything in the checkout that a peer is built from.
func (s *Set) inputs(peer Peer) (string, error) {
	digest := sha256.New()
	described := peer
	described.Title, described.Version, described.How = "", "", ""
	if err := json.NewEncoder(digest).Encode(described); err != nil {
		return "", err
	}
	files := append([]string{"probe.cc"}, peer.Sources...)
	if peer.Kind == kindCargo {
		files = append(files, filepath.Join(peer.Name, "Cargo.toml"), filepath.Join(peer.Name, "Cargo.lock"))
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(s.checkout.PeerSources(), name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(digest, "%s %d\n", name, len(data))
		digest.Write(data)
	}
	if peer.Kind == kindSame {
		digest.Write([]byte(s.readStamp(Peer{Name: peer.SameAs}).Inputs))
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

func (s *Set) readStamp(peer Peer) stamp {
	var read stamp
	// A stamp that is missing or damaged means: build again.
	if data, err := os.ReadFile(s.stampPath(peer)); err == nil && json.Unmarshal(data, &read) != nil {
		return stamp{}
	}
	return read
}

func (s *Set) writeStamp(peer Peer, content stamp) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.stampPath(peer)), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.stampPath(peer), data, 0o644)
}

// fromDebian takes the libraries from the installed package, or from a downloaded one that need
// not be installed.
func (s *Set) fromDebian(ctx context.Context, peer Peer, log io.Writer) error {
	if output, err := exec.CommandContext(ctx, "dpkg", "-L", peer.Package).Output(); err == nil {
		if err := s.takeLibraries(peer, strings.Split(string(output), "\n")); err == nil {
			return nil
		}
	}
	directory, err := temporary.Folder("tcm-peer-", "the package "+peer.Package)
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	// APT downloads as its own user where it can, which must be able to enter the folder.
	if err := os.Chmod(directory, 0o755); err != nil {
		return err
	}
	if err := run(ctx, log, directory, nil, "apt-get", "download", peer.Package); err != nil {
		return fmt.Errorf("package %s is not installed and cannot be downloaded: %w", peer.Package, err)
	}
	packages, err := filepath.Glob(filepath.Join(directory, "*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("apt-get download left %d packages", len(packages))
	}
	content := filepath.Join(directory, "content")
	if err := run(ctx, log, directory, nil, "dpkg-deb", "-x", packages[0], content); err != nil {
		return err
	}
	var files []string
	err = filepath.WalkDir(content, func(path string, _ fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	})
	if err != nil {
		return err
	}
	return s.takeLibraries(peer, files)
}

// takeLibraries copies the peer's libraries from among the files of a package.
func (s *Set) takeLibraries(peer Peer, files []string) error {
	for _, target := range s.Paths(peer) {
		taken := false
		for _, file := range files {
			if filepath.Base(file) != filepath.Base(target) {
				continue
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := replace(target, data); err != nil {
				return err
			}
			taken = true
			break
		}
		if !taken {
			return fmt.Errorf("package %s has no %s", peer.Package, filepath.Base(target))
		}
	}
	return nil
}

// replace writes a library beside the old one and moves it into place: a program may be running
// on the old one.
func replace(path string, data []byte) error {
	partial := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(partial)
	if err := os.WriteFile(partial, data, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, path)
}

func (s *Set) fromCrate(ctx context.Context, peer Peer, log io.Writer) error {
	if _, err := exec.LookPath("cargo"); err != nil {
		return errors.New("cargo is not installed: apt-get install cargo, or rustup; its sources come as Rust crates")
	}
	if peer.CMake != nil {
		return s.fromCMake(ctx, peer, log)
	}
	archive, err := s.buildArchive(ctx, peer, log)
	if err != nil {
		return err
	}
	return s.linkArchive(ctx, peer, archive, log)
}

func (s *Set) work(peer Peer, names ...string) string {
	return filepath.Join(append([]string{s.checkout.PeerBuild(), "work", peer.Name}, names...)...)
}

func (s *Set) crateFolder(peer Peer) string {
	return filepath.Join(s.checkout.PeerSources(), peer.Name)
}

// buildArchive lets the crate's build script make its static library and returns where it is.
func (s *Set) buildArchive(ctx context.Context, peer Peer, log io.Writer) (string, error) {
	var messages bytes.Buffer
	variables := []string{"CFLAGS=" + peer.CompilerFlags, "CXXFLAGS=" + peer.CompilerFlags}
	err := runTo(ctx, &messages, log, s.crateFolder(peer), variables, "cargo", "build", "--release",
		"--locked", "--message-format=json", "--target-dir", s.work(peer))
	if err != nil {
		return "", err
	}
	folder, err := outputFolder(&messages, peer.Crate)
	if err != nil {
		return "", err
	}
	var found string
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Name() == peer.Archive {
			found = path
		}
		return err
	})
	if err == nil && found == "" {
		err = fmt.Errorf("the build of crate %s left no %s", peer.Crate, peer.Archive)
	}
	return found, err
}

// outputFolder finds in cargo's messages the folder that a crate's build script wrote to.
func outputFolder(messages io.Reader, crate string) (string, error) {
	scanner := bufio.NewScanner(messages)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var message struct {
			Reason    string `json:"reason"`
			PackageID string `json:"package_id"`
			OutDir    string `json:"out_dir"`
		}
		if json.Unmarshal(scanner.Bytes(), &message) != nil {
			continue
		}
		if message.Reason == "build-script-executed" && isPackage(message.PackageID, crate) {
			return message.OutDir, nil
		}
	}
	if err := scanner.Err(); err != nil {
		return "", err
	}
	return "", fmt.Errorf("cargo ran no build script of crate %s", crate)
}

// isPackage knows both forms of a package's identity: "name version (source)" and
// "source#name@version".
func isPackage(identity, crate string) bool {
	return strings.HasPrefix(identity, crate+" ") || strings.Contains(identity, "#"+crate+"@")
}

// linkArchive makes a shared library of the whole archive. Debug information would only cost
// room; the symbols stay.
func (s *Set) linkArchive(ctx context.Context, peer Peer, archive string, log io.Writer) error {
	target := s.Paths(peer)[0]
	partial := fmt.Sprintf("%s.%d", target, os.Getpid())
	defer os.Remove(partial)
	words := []string{"-shared", "-O3", "-fPIC", "-std=c++20", "-fno-builtin-malloc", "-o", partial,
		"-Wl,-S", "-Wl,-soname," + filepath.Base(target)}
	for _, source := range peer.Sources {
		words = append(words, filepath.Join(s.checkout.PeerSources(), source))
	}
	words = append(words, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-pthread", "-ldl")
	if err := run(ctx, log, "", nil, "c++", words...); err != nil {
		return err
	}
	return os.Rename(partial, target)
}

// fromCMake builds a target of the crate's upstream sources.
func (s *Set) fromCMake(ctx context.Context, peer Peer, log io.Writer) error {
	crate, err := s.crateSources(ctx, peer, log)
	if err != nil {
		return err
	}
	folder := s.work(peer)
	words := append([]string{"-S", filepath.Join(crate, peer.CMake.Directory), "-B", folder,
		"-DCMAKE_BUILD_TYPE=Release"}, peer.CMake.Options...)
	if err := run(ctx, log, "", nil, "cmake", words...); err != nil {
		return err
	}
	if err := run(ctx, log, "", nil, "cmake", "--build", folder, "--target", peer.CMake.Target); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(folder, peer.CMake.Result))
	if err != nil {
		return err
	}
	return replace(s.Paths(peer)[0], data)
}

// crateSources returns the folder into which cargo unpacked a crate.
func (s *Set) crateSources(ctx context.Context, peer Peer, log io.Writer) (string, error) {
	var output bytes.Buffer
	err := runTo(ctx, &output, log, s.crateFolder(peer), nil, "cargo", "metadata", "--locked", "--format-version", "1")
	if err != nil {
		return "", err
	}
	var metadata struct {
		Packages []struct {
			Name         string `json:"name"`
			ManifestPath string `json:"manifest_path"`
		} `json:"packages"`
	}
	if err := json.Unmarshal(output.Bytes(), &metadata); err != nil {
		return "", err
	}
	for _, crate := range metadata.Packages {
		if crate.Name == peer.Crate {
			return filepath.Dir(crate.ManifestPath), nil
		}
	}
	return "", fmt.Errorf("cargo does not know crate %s", peer.Crate)
}

// run runs a step with its output in the log.
func run(ctx context.Context, log io.Writer, directory string, variables []string, name string, words ...string) error {
	return runTo(ctx, log, log, directory, variables, name, words...)
}

// runTo is run with standard output elsewhere. A step that is called off ends with all that it has started. The error quotes the end of what the step said.
func runTo(ctx context.Context, output, log io.Writer, directory string, variables []string, name string, words ...string) error {
	const kept, shown = 4096, 3
	said := text.Tail{Size: kept}
	command := exec.CommandContext(ctx, name, words...)
	command.Dir = directory
	command.Env = append(os.Environ(), variables...)
	command.Stdout = output
	command.Stderr = io.MultiWriter(log, &said)
	fmt.Fprintf(log, "%s\n", strings.Join(command.Args, " "))
	if err := launch.RunGroup(command); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, text.LastLines(said.String(), shown))
	}
	return nil
}
