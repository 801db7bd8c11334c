// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Package runfolder makes the private folder of a run, into which the processes of a program write figures, profiles and
// messages, and reads these back.
//
// Processes make their files late and by path, and may have given up rights before: a server that root starts goes on as
// another user. Where tcm runs as root, the folder is therefore one in which everybody can make files, but only by a
// name of 128 random bits that lies in a folder that nobody can list. The name is in the environment of the program and of
// the launcher, which other users cannot read, and never in a command line, which they can.
//
// What lies in the folder was written by the program, or by somebody who knows the name. It is read with distrust.
package runfolder

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tcm/internal/temporary"
	"tcm/internal/text"
)

const (
	// variablePrefix begins the variables that tcm_launch keeps from the program.
	variablePrefix = "TCM_LAUNCH_"
	// folderVariable has the path of the folder, for the report at the end.
	folderVariable = variablePrefix + "FOLDER"
	// setPrefix is followed by the name of a variable of the program, which tcm_launch sets.
	setPrefix = variablePrefix + "SET_"
)

// Modes of the folders and files of root: others pass through the outer folder, make files in the inner one, where they
// can list and remove nothing of others, and append to the figures.
const (
	passed     = 0o711
	shared     = os.ModeSticky | 0o733
	appendedTo = 0o622
)

// Folder is the private folder of a run.
type Folder struct {
	// path is that of the inner folder.
	path     string
	settings []string
	isShared bool
	// noRoom is what NoRoom returns once it has tried.
	noRoom error
	tried  bool
}

// Make makes a folder whose name begins with the prefix. The caller removes it.
func Make(prefix string) (*Folder, error) { return makeFolder(prefix, os.Geteuid() == 0) }

func makeFolder(prefix string, isShared bool) (*Folder, error) {
	outer, err := temporary.Folder(prefix, "the figures, profiles and reports of the run")
	if err != nil {
		return nil, err
	}
	var secret [16]byte
	// Read ends the program rather than return an error.
	_, _ = rand.Read(secret[:])
	folder := &Folder{path: filepath.Join(outer, hex.EncodeToString(secret[:])), isShared: isShared}
	if err := folder.create(outer); err != nil {
		folder.Remove()
		return nil, err
	}
	return folder, nil
}

// create changes modes after the fact, because the umask may take bits away.
func (f *Folder) create(outer string) error {
	if err := os.Mkdir(f.path, 0o700); err != nil || !f.isShared {
		return err
	}
	if err := os.Chmod(f.path, shared); err != nil {
		return err
	}
	return os.Chmod(outer, passed)
}

// OfRun returns the folder of the run that has ended, and closes it for other users.
func OfRun() (*Folder, error) {
	path := os.Getenv(folderVariable)
	if path == "" {
		return nil, errors.New("there is no " + folderVariable + ": this is a command for tcm_launch")
	}
	return &Folder{path: path}, os.Chmod(path, 0o700)
}

// Path returns the path of a file in the folder; of the folder if the name is empty.
func (f *Folder) Path(name string) string { return filepath.Join(f.path, name) }

// Remove removes the folder with all that is in it.
func (f *Folder) Remove() { os.RemoveAll(filepath.Dir(f.path)) }

// Create makes an empty file that processes append to.
func (f *Folder) Create(name string) error {
	file, err := os.OpenFile(f.Path(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if f.isShared {
		err = file.Chmod(appendedTo)
	}
	return errors.Join(err, file.Close())
}

// Set gives the program a variable, whose value has the path of the folder.
func (f *Folder) Set(name, value string) {
	f.settings = append(f.settings, setPrefix+name+"="+value)
}

// Environment is that of tcm_launch: the inherited one, with the variables of the program and the folder for the report.
func (f *Folder) Environment(inherited []string) []string {
	made := Without(inherited)
	return append(append(made, folderVariable+"="+f.path), f.settings...)
}

// Without returns an environment without the variables of a folder.
func Without(inherited []string) []string {
	return slices.DeleteFunc(slices.Clone(inherited), func(one string) bool { return strings.HasPrefix(one, variablePrefix) })
}

// roomForMost is the size of a file that is larger than most profiles.
const roomForMost = 1 << 20

// NoRoom returns why a file cannot be written to the folder, such as a full file system; nil if one can. It tries once.
func (f *Folder) NoRoom() error {
	if !f.tried {
		f.noRoom, f.tried = f.tryRoom(), true
	}
	return f.noRoom
}

func (f *Folder) tryRoom() error {
	file, err := os.CreateTemp(f.path, "room")
	if err == nil {
		_, err = file.Write(make([]byte, roomForMost))
		err = cmp.Or(err, file.Close(), os.Remove(file.Name()))
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; TMPDIR can name another folder", filepath.Dir(filepath.Dir(f.path)), text.WithoutPath(err))
}

// mostFiles bounds how many files of a run are looked at.
const mostFiles = 100_000

// Names returns the names of the files that begin and end like this, in the order of the alphabet.
func (f *Folder) Names(prefix, suffix string) ([]string, error) {
	folder, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	all, err := folder.Readdirnames(mostFiles)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(name string) bool {
		return !strings.HasPrefix(name, prefix) || !strings.HasSuffix(name, suffix)
	}), nil
}

// ErrNoFile says that somebody put something else in the place of a file.
var ErrNoFile = errors.New("not a file that a process of the run made")

// Open opens a file of the folder. It follows no links, and takes no device, no FIFO and no file that has other names as
// well, which may be one that its writer must not read.
func (f *Folder) Open(name string) (*os.File, error) {
	path := f.Path(name)
	if before, err := os.Lstat(path); err != nil {
		return nil, text.WithoutPath(err)
	} else if !before.Mode().IsRegular() {
		return nil, ErrNoFile
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	info, err := file.Stat()
	if err == nil && !isOneFile(info) {
		err = ErrNoFile
	}
	if err != nil {
		file.Close()
		return nil, text.WithoutPath(err)
	}
	return file, nil
}

func isOneFile(info os.FileInfo) bool {
	status, known := info.Sys().(*syscall.Stat_t)
	return info.Mode().IsRegular() && known && status.Nlink == 1
}

// Read returns the content of a file, or an error if it has more bytes than that.
func (f *Folder) Read(name string, most int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, text.WithoutPath(err)
	}
	if int64(len(content)) > most {
		return nil, fmt.Errorf("more than %d bytes", most)
	}
	return content, nil
}
