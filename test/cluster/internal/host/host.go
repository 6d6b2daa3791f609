// Package host has helpers for all steps on the machine: progress, polling, commands, files, and
// the error for an unsuitable machine.
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// CommandTimeout bounds short commands (ip, gcc, ...).
const CommandTimeout = 30 * time.Second

// Progress prints what the program is doing.
type Progress struct{ start time.Time }

// NewProgress returns a Progress that prints to stderr. The time starts now.
func NewProgress() *Progress { return &Progress{start: time.Now()} }

// Step prints one line with the time since the start in seconds.
func (p *Progress) Step(format string, args ...any) {
	log.New(os.Stderr, fmt.Sprintf("[%6.1fs] ", time.Since(p.start).Seconds()), 0).Printf(format, args...)
}

// Unavailable returns the error for a machine that cannot run the cluster.
func Unavailable(format string, args ...any) error {
	return fmt.Errorf("%w; to use a cluster of your own set CLUSTER=external, KUBECONFIG and IMAGE_REGISTRY",
		fmt.Errorf("the local cluster cannot run on this machine: "+format, args...))
}

// FinalError ends a poll immediately.
type FinalError struct{ Err error }

func (e FinalError) Error() string { return e.Err.Error() }
func (e FinalError) Unwrap() error { return e.Err }

// Poll calls check until it returns nil or a FinalError. After the timeout, it returns the last
// error of check.
func Poll(ctx context.Context, timeout, interval time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		// The error of an interrupted check is less useful than the error before it.
		if last != nil && ctx.Err() != nil {
			err = last
		}
		last = err
		if final := (FinalError{}); errors.As(err, &final) {
			return final.Err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", timeout, err)
		case <-ticker.C:
		}
	}
}

// Run runs a short command. The error includes the command's output.
func Run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("failed to run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// CommandError adds a command's stderr to its exit status.
func CommandError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// CertPool reads a CA certificate from a file.
func CertPool(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read the CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("failed to parse the CA")
	}
	return pool, nil
}

// WriteFile writes a file and creates its directory if necessary.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("failed to make %s: %w", filepath.Dir(path), err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	return nil
}
