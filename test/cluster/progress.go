package main

// This file prints what the program is doing.

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress prints one line per step with the seconds since the start.
type progress struct {
	out   io.Writer
	start time.Time
	mu    sync.Mutex
}

func newProgress(out io.Writer) *progress { return &progress{out: out, start: time.Now()} }

func (p *progress) step(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.out, "[%6.1fs] %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}
