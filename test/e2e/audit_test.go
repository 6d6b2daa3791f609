package e2e

// This file reads the API server's audit log, which is readable only on the local cluster.

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// operatorUser returns the user name of the installed operator.
func operatorUser() string {
	return "system:serviceaccount:" + suite.operatorNamespace + ":" + operatorName
}

// auditLines calls each(line) for every line of the audit log that contains all texts, including
// rotated files. The texts are a filter, because decoding every line would take too long.
// auditLines stops at the first error.
func auditLines(each func(line []byte) error, texts ...string) error {
	files, err := filepath.Glob(strings.TrimSuffix(suite.auditLog, ".log") + "*.log")
	if err != nil {
		return fmt.Errorf("failed to find the audit log: %w", err)
	}
	for _, name := range files {
		if err := auditLinesOf(name, each, texts); err != nil {
			return fmt.Errorf("failed to read the audit log: %w", err)
		}
	}
	return nil
}

func auditLinesOf(name string, each func(line []byte) error, texts []string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()

	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
next:
	for lines.Scan() {
		for _, text := range texts {
			if !bytes.Contains(lines.Bytes(), []byte(text)) {
				continue next
			}
		}
		if err := each(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
