package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"time"
)

const (
	mediaTypeManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaTypeConfig   = "application/vnd.oci.image.config.v1+json"
	mediaTypeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// imageConfig is the process part of an image's configuration.
type imageConfig struct {
	User         string              `json:",omitempty"`
	ExposedPorts map[string]struct{} `json:",omitempty"`
	Env          []string            `json:",omitempty"`
	Entrypoint   []string            `json:",omitempty"`
	Cmd          []string            `json:",omitempty"`
	WorkingDir   string              `json:",omitempty"`
	Labels       map[string]string   `json:",omitempty"`
	StopSignal   string              `json:",omitempty"`
}

// descriptor identifies a blob.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// imageDocuments returns the configuration and the manifest of an image with one layer. They have
// no timestamps, so the same files result in the same image.
func imageDocuments(config imageConfig, layer descriptor) (configJSON, manifestJSON []byte, err error) {
	configJSON, err = json.Marshal(map[string]any{
		"created":      time.Unix(0, 0).UTC(),
		"architecture": runtime.GOARCH,
		"os":           "linux",
		"config":       config,
		"rootfs":       map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to encode the configuration of an image: %w", err)
	}
	manifestJSON, err = json.Marshal(manifest{
		SchemaVersion: 2,
		MediaType:     mediaTypeManifest,
		Config:        describe(mediaTypeConfig, configJSON),
		Layers:        []descriptor{layer},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("failed to encode the manifest of an image: %w", err)
	}
	return configJSON, manifestJSON, nil
}

func describe(mediaType string, data []byte) descriptor {
	sum := sha256.Sum256(data)
	return descriptor{MediaType: mediaType, Digest: "sha256:" + hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// layerWriter writes the tar file of a layer. If several entries have the same name, the first one
// wins.
type layerWriter struct {
	tar  *tar.Writer
	seen map[string]bool
}

func newLayerWriter(out io.Writer) *layerWriter {
	return &layerWriter{tar: tar.NewWriter(out), seen: map[string]bool{".": true}}
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
func (w *layerWriter) debianPackage(file string, skip func(name string) bool) (err error) {
	cmd := exec.Command("dpkg-deb", "--fsys-tarfile", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("failed to unpack %s: %w", file, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("failed to unpack %s: %w", file, err)
	}
	defer func() {
		// Drain the pipe, otherwise dpkg-deb would block.
		_, _ = io.Copy(io.Discard, out)
		if waitErr := cmd.Wait(); waitErr != nil {
			err = errors.Join(err, fmt.Errorf("failed to unpack %s: %w: %s", file, waitErr, strings.TrimSpace(stderr.String())))
		}
	}()
	reader := tar.NewReader(out)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to read %s: %w", file, err)
		}
		if skip(path.Clean("/" + header.Name)) {
			continue
		}
		if err := w.add(header, reader); err != nil {
			return err
		}
	}
}
