package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Walk calls visit for each entry of a .deb file.
func Walk(file string, visit func(header *tar.Header, content io.Reader) error) (err error) {
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
		if err := visit(header, reader); err != nil {
			return err
		}
	}
}
