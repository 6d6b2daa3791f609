package images

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/example/nginx-operator/test/cluster/internal/debian"
)

// layerWriter writes the tar file of a layer. If several entries have the same name, the first one
// wins.
type layerWriter struct {
	tar  *tar.Writer
	seen map[string]bool
}

// add writes an entry and its missing parent directories.
func (w *layerWriter) add(header *tar.Header, content io.Reader) error {
	header.Name = strings.TrimPrefix(path.Clean("/"+header.Name), "/")
	if header.Name == "" || w.seen[header.Name] {
		return nil
	}
	if dir := path.Dir(header.Name); !w.seen[dir] {
		if err := w.add(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil); err != nil {
			return err
		}
	}
	w.seen[header.Name] = true
	header.ModTime, header.AccessTime, header.ChangeTime = time.Unix(0, 0), time.Time{}, time.Time{}
	header.Uname, header.Gname, header.Format = "", "", tar.FormatUnknown
	if header.Typeflag == tar.TypeDir {
		header.Name += "/"
	}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("failed to write %s to a layer: %w", header.Name, err)
	}
	if content == nil || header.Size == 0 {
		return nil
	}
	if _, err := io.CopyN(w.tar, content, header.Size); err != nil {
		return fmt.Errorf("failed to write %s to a layer: %w", header.Name, err)
	}
	return nil
}

func (w *layerWriter) dir(name string, mode int64, owner int) error {
	return w.add(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner}, nil)
}

func (w *layerWriter) link(name, target string) error {
	return w.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}, nil)
}

func (w *layerWriter) text(name, content string) error {
	return w.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}, strings.NewReader(content))
}

// program adds an executable file from the machine.
func (w *layerWriter) program(name, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("failed to open %s: %w", source, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("failed to look at %s: %w", source, err)
	}
	return w.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size()}, file)
}

// debianPackage adds the files of a .deb file, except files for which skip returns true.
func (w *layerWriter) debianPackage(file string, skip func(name string) bool) error {
	return debian.Walk(file, func(header *tar.Header, content io.Reader) error {
		if skip(path.Clean("/" + header.Name)) {
			return nil
		}
		return w.add(header, content)
	})
}

// newLayer returns an uncompressed layer: in the cluster, space costs less than time.
func newLayer(write func(*layerWriter) error) (v1.Layer, error) {
	var out bytes.Buffer
	w := &layerWriter{tar: tar.NewWriter(&out), seen: map[string]bool{".": true}}
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.tar.Close(); err != nil {
		return nil, fmt.Errorf("failed to finish a layer: %w", err)
	}
	return static.NewLayer(out.Bytes(), types.OCIUncompressedLayer), nil
}
