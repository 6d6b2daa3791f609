package operatormanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// What the webhook server takes. Whoever reaches it is asked for no name, so any Pod may post. The sum is what the container's
// limit leaves room for beside the caches.
const (
	// bytesInFlight bounds the memory of all requests together, bytesPerClient that of one address: a Pod cannot take all of it.
	bytesInFlight  = 128 << 20
	bytesPerClient = 64 << 20
	// requestsPerClient bounds the requests of one address that are worked on or wait for memory.
	requestsPerClient = 128
	// largestConversion is a list page of 10,000 objects of 6 KiB: that many the API server converts with one request.
	largestConversion = 60 << 20
	// largestAdmission is two objects of 3 MiB, the largest that the API server takes, and what is around them.
	largestAdmission = 7 << 20
	// admissionCopies is how many times the bytes of a review are in memory while it is decoded into Go types.
	admissionCopies = 8
	// waitForMemory and readBody bound how long a request waits for others, and for its client.
	waitForMemory = 5 * time.Second
	readBody      = 10 * time.Second
)

// requests bounds the memory of all requests that are being answered.
type requests struct {
	all  *semaphore.Weighted
	slow transfers

	mu      sync.Mutex
	clients map[string]*clientShare
}

func newRequests() *requests {
	return &requests{
		all: semaphore.NewWeighted(bytesInFlight), slow: transfers{all: map[*transfer]struct{}{}}, clients: map[string]*clientShare{},
	}
}

// clientShare is what one address may take.
type clientShare struct {
	bytes    *semaphore.Weighted
	requests int
}

// limit lets a handler see only bodies that are read whole and fit into memory beside all others.
func (s *requests) limit(next http.Handler, largest, copies int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			http.Error(w, "the length of the body has to be given (Content-Length)", http.StatusLengthRequired)
			return
		}
		if r.ContentLength > largest {
			http.Error(w, fmt.Sprintf("the body has %d bytes, and %d are the most that are read; list fewer objects at a time (limit)",
				r.ContentLength, largest), http.StatusRequestEntityTooLarge)
			return
		}
		release, err := s.acquire(r.Context(), r.RemoteAddr, r.ContentLength*copies)
		if err != nil {
			w.Header().Set("Retry-After", "1")
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer release()
		of, connected := r.Context().Value(connectionKey{}).(*connection)
		abort := func() {
			if connected {
				reset(of.Conn) // a deadline would not do: TLS says goodbye, which takes it five seconds more
			}
		}
		body, err := s.slow.read(w, r, abort)
		if err != nil {
			http.Error(w, "failed to read the body: "+err.Error(), http.StatusRequestTimeout)
			return
		}
		if connected {
			defer of.answer()()
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		defer func() {
			if panicked := recover(); panicked != nil {
				log.FromContext(r.Context()).Error(fmt.Errorf("panic: %v", panicked), "Failed to answer a review", "path", r.URL.Path)
				http.Error(w, "the review could not be answered", http.StatusInternalServerError)
			}
		}()
		answer := &answer{ResponseWriter: w, of: &s.slow, abort: abort}
		defer answer.done()
		next.ServeHTTP(answer, r)
	})
}

// read reads a body of known length, in bounded time.
func (t *transfers) read(w http.ResponseWriter, r *http.Request, abort func()) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(readBody)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	end := t.begin(abort)
	body := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, body)
	end()
	if err != nil {
		return nil, err
	}
	if err := control.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	return body, nil
}

var errTooMany = errors.New("too many requests of this client are being answered; try again later")

// acquire takes memory for a request: of what its client has first, so that who waits for that holds up nobody else.
func (s *requests) acquire(ctx context.Context, address string, weight int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitForMemory)
	defer cancel()
	share, leave := s.enter(hostOf(address))
	if share == nil {
		return nil, errTooMany
	}
	if err := share.bytes.Acquire(ctx, weight); err != nil {
		leave()
		return nil, errTooMany
	}
	if err := s.slow.acquire(ctx, s.all, weight); err != nil {
		share.bytes.Release(weight)
		leave()
		return nil, errors.New("too many requests are being answered; try again later")
	}
	return func() {
		s.all.Release(weight)
		share.bytes.Release(weight)
		leave()
	}, nil
}

// enter counts a request of a client, nil where it has too many. A client without requests is not remembered.
func (s *requests) enter(host string) (share *clientShare, leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	share = s.clients[host]
	if share == nil {
		share = &clientShare{bytes: semaphore.NewWeighted(bytesPerClient)}
		s.clients[host] = share
	}
	if share.requests >= requestsPerClient {
		return nil, nil
	}
	share.requests++
	return share, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if share.requests--; share.requests == 0 {
			delete(s.clients, host)
		}
	}
}
