// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newTexts writes what the build installs beside tcm, from what the commands say of themselves.
func newTexts() *cobra.Command {
	return &cobra.Command{
		Use:    "texts FOLDER",
		Short:  "Write manual pages and shell completions",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(_ *cobra.Command, words []string) error { return writeTexts(words[0]) },
	}
}

func writeTexts(folder string) error {
	pages := filepath.Join(folder, "man1")
	completions := map[string]func(*cobra.Command, string) error{
		"bash-completion/completions/tcm": func(root *cobra.Command, path string) error { return root.GenBashCompletionFileV2(path, true) },
		"zsh/vendor-completions/_tcm":     (*cobra.Command).GenZshCompletionFile,
		"fish/vendor_completions.d/tcm.fish": func(root *cobra.Command, path string) error {
			return root.GenFishCompletionFile(path, true)
		},
	}
	// A command that is not there any more must not leave its page.
	if err := errors.Join(os.RemoveAll(pages), os.MkdirAll(pages, 0o755)); err != nil {
		return err
	}
	root := newRoot()
	root.DisableAutoGenTag = true
	// The day stays out of the pages, so that the same sources make the same package.
	header := &doc.GenManHeader{Section: "1", Source: "TCMalloc " + version, Manual: "TCMalloc", Date: new(time.Time)}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	if err := finishPages(pages); err != nil {
		return err
	}
	for name, write := range completions {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(root, path); err != nil {
			return err
		}
	}
	return nil
}

// unwantedInPages is what the generator prints for a day that is not given, and for flags that are
// off or empty unless they are named.
var unwantedInPages = []string{"Jan 0001", "[=false]", `=""`, "=[]"}

// finishPages tidies the manual pages of a folder and compresses them, as they are installed.
func finishPages(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, unwanted := range unwantedInPages {
			data = bytes.ReplaceAll(data, []byte(unwanted), nil)
		}
		var packed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		_, err = writer.Write(data)
		if err := errors.Join(err, writer.Close(), os.WriteFile(path+".gz", packed.Bytes(), 0o644), os.Remove(path)); err != nil {
			return err
		}
	}
	return nil
}
