package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// folder is a sink that saves each body in a file of one directory. A file
// appears under its name when it is complete, and then replaces what had that
// name; until then, and after a failure, the old one stays.
type folder struct {
	path string
	root *os.Root
}

// openFolder makes the directory if need be, and finds out whether it can be
// written to, so that nothing is fetched in vain.
func openFolder(path string) (*folder, error) {
	f := &folder{path: path}
	wrong := func(err error) (*folder, error) {
		if f.root != nil {
			f.root.Close()
		}
		return nil, f.wrong(err, "give another directory with -o")
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return wrong(err)
	}
	var err error
	if f.root, err = os.OpenRoot(path); err != nil {
		return wrong(err)
	}
	probe, err := f.temporary()
	if err != nil {
		return wrong(err)
	}
	name := probe.Name()
	if err := errors.Join(probe.Close(), f.root.Remove(filepath.Base(name))); err != nil {
		return wrong(err)
	}
	return f, nil
}

func (f *folder) wrong(err error, hint string) *outputError {
	return &outputError{what: "cannot write to the directory " + strconv.Quote(printable(f.path)), err: err, hint: hint}
}

// temporary makes a file that nobody else has.
func (f *folder) temporary() (*os.File, error) {
	for {
		name := ".heed-" + strconv.FormatUint(rand.Uint64(), 36) + ".part"
		file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

func (f *folder) begin(it *item) (delivery, error) {
	if info, err := f.root.Lstat(it.name); err == nil && info.IsDir() {
		return nil, &outputError{
			what: "cannot save as " + it.name, err: errors.New("a directory has that name"),
			hint: "move it away, or give another directory with -o", alone: true,
		}
	}
	file, err := f.temporary()
	if err != nil {
		return nil, f.wrong(err, "make room or give another directory with -o")
	}
	return &saving{folder: f, file: file, name: it.name}, nil
}

func (f *folder) room(<-chan struct{}) {}

func (f *folder) close() { f.root.Close() }

// saving is one body on its way into a file.
type saving struct {
	folder *folder
	file   *os.File
	name   string
}

// Write appends to the temporary file.
func (s *saving) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil {
		return n, s.folder.wrong(err, "make room and run again")
	}
	return n, nil
}

func (s *saving) end(keep bool) error {
	temporary := filepath.Base(s.file.Name())
	err := s.file.Close()
	if keep && err == nil {
		if err = s.folder.root.Rename(temporary, s.name); err == nil {
			return nil
		}
	}
	_ = s.folder.root.Remove(temporary)
	if !keep {
		return nil
	}
	return s.folder.wrong(err, "make room and run again")
}
