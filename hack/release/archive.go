package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// packed is a file of an archive. Archives have no times and no owners, so that the same files give
// the same archive.
type packed struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// readPacked reads a file for an archive, under a name.
func readPacked(file, name string, mode fs.FileMode) (packed, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return packed{}, fmt.Errorf("failed to read %s: %w", file, err)
	}
	return packed{name, mode, content}, nil
}

// readTree reads the files below a directory, in lexical order, under names that start with prefix.
func readTree(dir, prefix string) ([]packed, error) {
	var out []packed
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		one, err := readPacked(file, prefix+filepath.ToSlash(strings.TrimPrefix(file, dir)), 0o644)
		out = append(out, one)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("failed to read the files of %s: %w", dir, err)
	}
	return out, nil
}

// tarball returns a compressed tar archive of the files.
func tarball(files []packed) ([]byte, error) {
	var out bytes.Buffer
	compressor := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressor)
	err := pack(files, func(file packed) (io.Writer, error) {
		return archive, archive.WriteHeader(&tar.Header{Name: file.name, Mode: int64(file.mode), Size: int64(len(file.content))})
	})
	err = errors.Join(err, archive.Close(), compressor.Close())
	return out.Bytes(), err
}

// zipped returns a zip archive of the files.
func zipped(files []packed) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	err := pack(files, func(file packed) (io.Writer, error) {
		header := &zip.FileHeader{Name: file.name, Method: zip.Deflate}
		header.SetMode(file.mode)
		return archive.CreateHeader(header)
	})
	err = errors.Join(err, archive.Close())
	return out.Bytes(), err
}

// pack writes the files to an archive. add starts the next file.
func pack(files []packed, add func(packed) (io.Writer, error)) error {
	for _, file := range files {
		to, err := add(file)
		if err == nil {
			_, err = to.Write(file.content)
		}
		if err != nil {
			return fmt.Errorf("failed to pack %s: %w", file.name, err)
		}
	}
	return nil
}
