package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A client outlives the step that started it, and keeps its first failure.
func TestCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step, cancel := context.WithCancel(t.Context())
		c := startCounter(step, "reads", time.Second, func(ctx context.Context, n int) error {
			switch n {
			case 1:
				cancel()
				return errors.New("no answer")
			case 3:
				return errors.New("another error")
			}
			time.Sleep(500 * time.Millisecond)
			return ctx.Err()
		})
		time.Sleep(time.Second)
		if err := c.enough(); err == nil || c.failure() != nil || c.short() != "1/0" ||
			c.String() != "reads: 1, 0 failed, the slowest took 0.5 s" {
			t.Errorf("at first %v, %v, %q, %q", err, c.failure(), c.short(), c)
		}
		time.Sleep(100 * time.Second)
		c.Stop()
		if err := c.failure(); err == nil || !strings.Contains(err.Error(), "reads: 2 of ") ||
			!strings.Contains(err.Error(), "the first after 1.5 s: no answer") {
			t.Errorf("failure is %v", err)
		}
		if err := c.enough(); err != nil {
			t.Error(err)
		}
	})
}

func TestCounterNotBegun(t *testing.T) {
	var none *counter
	if none.short() != "-" || none.failure() != nil {
		t.Errorf("a client that has not begun is %q, %v", none.short(), none.failure())
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
