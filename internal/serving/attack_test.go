package serving

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// smallLimit is the maximum 99th percentile of the durations of small reviews during an attack.
	// smallReviews is the number of these reviews.
	smallLimit   = 200 * time.Millisecond
	smallReviews = 300
	// busyMachine is the factor by which small reviews may slow down during an attack if the
	// machine cannot meet smallLimit, for example with the race detector or parallel tests. Waiting
	// for a slow body would take seconds.
	busyMachine = 5
)

// TestSlowBodiesDelayNobody announces the largest bodies from six addresses, and sends one byte at
// a time. Small reviews, and large reviews of the API server, must not wait for these bodies.
func TestSlowBodiesDelayNobody(t *testing.T) {
	webhooks := newWebhooks(decode)
	_, address := serveLocally(t, webhooks.port)
	client, body := clientAt(t, "127.0.0.1", false), string(reviewOf(small))
	post := func() int { return ask(t, client, "https://"+address+"/validate", body) }
	before := p99(t, post)
	for i := range 6 {
		for range 10 {
			trickle(t, address, fmt.Sprintf("127.0.2.%d", i+1), "/convert", largestConversion)
			trickle(t, address, fmt.Sprintf("127.0.2.%d", i+1), "/validate", small)
		}
	}
	requireFast(t, p99(t, post), max(smallLimit, busyMachine*before))
	began := time.Now()
	if code := ask(t, clientAt(t, "127.0.0.1", false), "https://"+address+"/convert", string(reviewOf(20<<20))); code != http.StatusOK {
		t.Errorf("a large conversion was answered with %d", code)
	}
	t.Logf("a large conversion took %s", time.Since(began))
}

// TestLargeReviewsDelayNoSmallOnes posts large reviews, 40 at a time, like a tenant that stores
// large objects through the API server. Small reviews from the same address must not wait for them.
// Only the handlers advance the time, so the test does not depend on the machine.
func TestLargeReviewsDelayNoSmallOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, handler := serve(t, "/validate", func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Duration(r.ContentLength) * time.Second / (4 << 20)) // as slow as decoding
		})
		ctx, stop := context.WithCancel(t.Context())
		group := sync.WaitGroup{}
		for range 40 {
			group.Go(func() {
				for ctx.Err() == nil {
					post(handler, "/validate", "192.0.2.1:1", 1400<<10, 0)
				}
			})
		}
		synctest.Wait()
		requireFast(t, p99(t, func() int { return post(handler, "/validate", "192.0.2.1:2", small, 0).Code }), smallLimit)
		stop()
		group.Wait()
	})
}

// decode decodes the review, like an admission handler.
func decode(w http.ResponseWriter, r *http.Request) {
	var review any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// reviewOf returns a review with a length of size bytes.
func reviewOf(size int) []byte {
	return fmt.Appendf(nil, `{"request":{"object":{"text":%q}}}`, bytes.Repeat([]byte("a"), size-40))
}

// trickle sends the header of a request, and then its body byte by byte until the test ends or the
// server closes the connection.
func trickle(t *testing.T, to, from, path string, length int) {
	t.Helper()
	conn := dial(t, from, to, true)
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, length); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, err := conn.Write([]byte(" ")); err == nil; _, err = conn.Write([]byte(" ")) {
			time.Sleep(100 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
}

// p99 posts small reviews and returns the 99th percentile of their durations.
func p99(t *testing.T, post func() int) time.Duration {
	t.Helper()
	times := make([]time.Duration, smallReviews)
	for i := range times {
		began := time.Now()
		if code := post(); code != http.StatusOK {
			t.Errorf("answered %d", code)
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	most := times[len(times)*99/100]
	t.Logf("half of the small reviews took %s, 99 percent %s", times[len(times)/2], most)
	return most
}

func requireFast(t *testing.T, took, limit time.Duration) {
	t.Helper()
	if took > limit {
		t.Errorf("99 percent of the small reviews took %s, want at most %s", took, limit)
	}
}
