package serving

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// smallLimit bounds each small review during an attack, and smallReviews is their number. The time
// is virtual: only what a review waits for counts. `make bench-hostile` measures the rest.
const smallLimit, smallReviews = 50 * time.Millisecond, 300

// TestSlowBodiesDelayNobody announces the largest bodies from six addresses, and sends one byte at
// a time. Small reviews, and large reviews of the API server, must not wait for these bodies.
func TestSlowBodiesDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, stop := piped(t, newWebhooks(decode))
		var bodies sync.WaitGroup
		for i := range 6 * 24 {
			conn, path, length := dial(fmt.Sprintf("192.0.2.%d:1", i%6+2)), "/convert", largestConversion
			if i%2 == 0 {
				path, length = "/validate", small
			}
			write(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, length))(t, conn)
			bodies.Go(func() {
				for _, err := conn.Write([]byte(" ")); err == nil; _, err = conn.Write([]byte(" ")) {
					time.Sleep(100 * time.Millisecond)
				}
			})
		}
		client := dial("192.0.2.1:1")
		answers := bufio.NewReader(client)
		ask := func(path string, size int) int {
			body := reviewOf(size)
			write(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body))(t, client)
			response, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			return response.StatusCode
		}
		requireFast(t, func() int { return ask("/validate", small) })
		began := time.Now()
		if code := ask("/convert", 20<<20); code != http.StatusOK || time.Since(began) > smallLimit {
			t.Errorf("a large conversion was answered with %d after %s", code, time.Since(began))
		}
		stop()
		bodies.Wait()
	})
}

// TestStalledBodiesDelayLargeReviews announces the largest bodies from ten addresses, and sends
// only as much as reserves memory. Or it sends all, and reads no answer. Large reviews of the API
// server must succeed before its timeout.
func TestStalledBodiesDelayLargeReviews(t *testing.T) {
	const addresses, each = 10, 6
	for name, test := range map[string]struct {
		path               string
		length, sent, size int
	}{
		"admissions":     {"/validate", largestAdmission, small, 6 << 20},
		"conversions":    {"/convert", largestConversion, small, 20 << 20},
		"unread answers": {"/validate?large", largestAdmission, largestAdmission, 6 << 20},
		"unread lists":   {"/convert?large", largestAdmission, largestAdmission, 20 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dial, stop := piped(t, newWebhooks(func(w http.ResponseWriter, r *http.Request) {
					if _, err := io.Copy(io.Discard, r.Body); err == nil && r.URL.RawQuery == "large" {
						_, _ = w.Write(make([]byte, 8<<20))
					}
				}))
				post := func(address, path string, length, sent int) *tls.Conn {
					conn := dial(address)
					_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", path, length)
					_, _ = conn.Write(bytes.Repeat([]byte(" "), sent))
					return conn
				}
				ctx, end := context.WithCancel(t.Context())
				var attackers sync.WaitGroup
				for i := range addresses * each {
					attackers.Go(func() {
						for ctx.Err() == nil {
							conn := post(fmt.Sprintf("192.0.3.%d:1", i%addresses+1), test.path, test.length, test.sent)
							for err := error(nil); err == nil && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
								_, err = conn.NetConn().Write(nil) // until it is reset
							}
						}
					})
				}
				time.Sleep(2 * time.Second)
				longest := time.Duration(0)
				for range 10 {
					began := time.Now()
					path, _, _ := strings.Cut(test.path, "?")
					response, err := http.ReadResponse(bufio.NewReader(post("192.0.2.1:1", path, test.size, test.size)), nil)
					if err != nil || response.StatusCode != http.StatusOK {
						t.Errorf("a review is answered with %+v, %v", response, err)
					}
					longest = max(longest, time.Since(began))
				}
				t.Logf("a review took up to %s", longest)
				if longest >= waitForMemory {
					t.Error("that is longer than the API server waits")
				}
				end()
				stop()
				attackers.Wait()
			})
		})
	}
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
		requireFast(t, func() int { return post(handler, "/validate", "192.0.2.1:2", small, 0).Code })
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

// reviewOf returns a review with a length of a little less than size bytes.
func reviewOf(size int) []byte {
	return fmt.Appendf(nil, `{"request":{"object":{"text":%q}}}`, bytes.Repeat([]byte("a"), size-40))
}

// requireFast posts small reviews. None may take longer than smallLimit.
func requireFast(t *testing.T, post func() int) {
	t.Helper()
	for range smallReviews {
		began := time.Now()
		if code := post(); code != http.StatusOK || time.Since(began) > smallLimit {
			t.Errorf("a small review was answered with %d after %s", code, time.Since(began))
		}
	}
}
