// Package host holds what every step on the machine uses: progress, waits that end, commands, files, and the error for a
// machine that cannot do it.
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

// CommandTimeout bounds the short commands (ip, gcc, ...).
const CommandTimeout = 30 * time.Second

// Progress prints what the program is doing.
type Progress struct{ start time.Time }

// NewProgress prints on stderr and counts the seconds from now on.
func NewProgress() *Progress { return &Progress{start: time.Now()} }

// Step prints one line with the seconds since the start.
func (p *Progress) Step(format string, args ...any) {
	log.New(os.Stderr, fmt.Sprintf("[%6.1fs] ", time.Since(p.start).Seconds()), 0).Printf(format, args...)
}

// Unavailable is the error where the cluster cannot run on this machine at all.
func Unavailable(format string, args ...any) error {
	return fmt.Errorf("%w; to use a cluster of your own set CLUSTER=external, KUBECONFIG and IMAGE_REGISTRY",
		fmt.Errorf("the local cluster cannot run on this machine: "+format, args...))
}

// FinalError ends a poll at once.
type FinalError struct{ Err error }

func (e FinalError) Error() string { return e.Err.Error() }
func (e FinalError) Unwrap() error { return e.Err }

// Poll calls check until it returns nil or a FinalError, and returns its last error when the time is up.
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
		// A check that was cut off knows less than the one before.
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

// Run runs a short command; what it wrote is part of the error.
func Run(ctx context.Context, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, CommandTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("failed to run %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// CommandError adds what a command wrote to stderr to its exit status.
func CommandError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// CertPool reads a CA.
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

// WriteFile writes a file and makes its directory where that is missing.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("failed to make %s: %w", filepath.Dir(path), err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("failed to write %s: %w", path, err)
	}
	return nil
}
