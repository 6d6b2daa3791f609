package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A client counts what it asks, goes on after a failure, and keeps the first one.
func TestCounter(t *testing.T) {
	var asked int
	step, cancel := context.WithCancel(t.Context())
	enough := make(chan struct{})
	c := startCounter(step, "reads", time.Microsecond, func(ctx context.Context) error {
		asked++
		switch asked {
		case 2:
			cancel() // the end of the step that started it is not the end of the client
			return errors.New("no answer")
		case 4:
			return errors.New("another error")
		case 2 * leastAnswers:
			close(enough)
		}
		return ctx.Err()
	})
	select {
	case <-enough:
	case <-time.After(10 * time.Second):
		t.Error("it does not go on")
	}
	c.finish()
	after := asked
	if c.total != after || c.failed != 2 {
		t.Errorf("%d asked, but %s", after, c)
	}
	if err := c.failure(); err == nil || !strings.Contains(err.Error(), "no answer") || !strings.Contains(err.Error(), "reads: 2 of ") {
		t.Errorf("failure is %v", err)
	}
	if err := c.enough(); err != nil {
		t.Error(err)
	}
	time.Sleep(10 * time.Millisecond)
	if asked != after {
		t.Error("it goes on after its end")
	}
}

func TestCounterTexts(t *testing.T) {
	var none *counter
	if none.short() != "-" || none.failure() != nil {
		t.Errorf("a client that has not begun is %q, %v", none.short(), none.failure())
	}
	c := &counter{name: "reads"}
	c.record(1500*time.Millisecond, nil)
	c.record(time.Millisecond, nil)
	if c.short() != "2/0" || c.String() != "reads: 2, 0 failed, the slowest took 1.5 s" || c.failure() != nil {
		t.Errorf("%q, %q, %v", c.short(), c, c.failure())
	}
	if err := c.enough(); err == nil {
		t.Error("two answers are enough")
	}
	c.record(0, errors.New("gone"))
	if c.short() != "3/1" {
		t.Errorf("%q", c.short())
	}
}

// Only nginx's own page is a right answer.
func TestCheckPage(t *testing.T) {
	status, text := http.StatusOK, "<html>\n<title>Welcome to nginx!</title>\n"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	client := newClient(time.Minute, false)
	request := func() error { return checkPage(getOnce(t.Context(), client, server.URL)) }
	if err := request(); err != nil {
		t.Error(err)
	}
	status = http.StatusServiceUnavailable
	if err := request(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("error %v", err)
	}
	status, text = http.StatusOK, "something else"
	if err := request(); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("error %v", err)
	}
}
