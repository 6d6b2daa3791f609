package serving

import (
	"cmp"
	"context"
	"maps"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

const (
	// waitForTurn bounds the wait of a handshake or a request. The API server waits for 5 seconds.
	waitForTurn = 5 * time.Second
	// longestTurn is the time after which the next turn starts, even if this one continues.
	// leastTurn is the time that the shortest turn counts.
	longestTurn, leastTurn = 50 * time.Millisecond, 50 * time.Microsecond
	// credit is how far an address can be behind its share: about 192 handshakes with RSA.
	credit = 500 * time.Millisecond
	// roundEvery is the number of turns of which one goes round the addresses.
	roundEvery = 8
	// usageDecay is the time in which the usage of all addresses decays to a third.
	usageDecay = 10 * time.Second
	// unpaced is the usage, a fifth of the processor, up to which no pauses follow.
	unpaced = 2 * time.Second
	// Go reads answers of the API server only while no goroutine is runnable, so a pause follows
	// turns of shortestPause or more, of the same length up to longestPause.
	shortestPause, longestPause = time.Millisecond, 2 * time.Millisecond
)

// Turns shares the processor between the clients of the ports, one turn at a time. It is start-time
// fair queueing (Goyal, Vin, and Cheng, 1996): a turn adds its time to the tag of its address, and
// the next turn goes to the address with the least tag. One of roundEvery turns goes round all
// addresses, so none waits for the credit of all others.
type Turns struct {
	mu sync.Mutex
	// taken is true during a turn and during the pause after it.
	taken bool
	// clients has the *client of each address. waiting has the clients with waiting turns.
	clients *lru.Cache
	waiting map[*client]struct{}
	// virtual is the greatest tag at the start of a turn. passed counts the turns that waited.
	virtual time.Duration
	passed  int
	// used is the decaying usage at asOf. sincePause is the time of turns since the last pause.
	used       time.Duration
	asOf       time.Time
	sincePause time.Duration
}

// client has the tag of an address, which is at most credit behind the virtual time, the number of
// its last turn in the round of all addresses, and its waiting turns in their order.
type client struct {
	tag     time.Duration
	last    int
	waiting []chan struct{}
}

// NewTurns returns unused Turns.
func NewTurns() *Turns {
	return &Turns{clients: lru.New(rememberedAddresses), waiting: map[*client]struct{}{}}
}

// take waits for a turn of an address. The caller calls end once or more.
func (t *Turns) take(ctx context.Context, host string) (end func(), err error) {
	t.mu.Lock()
	own := getOrAdd(t.clients, host, &client{})
	if len(own.waiting) == 0 {
		own.tag = max(own.tag, t.virtual-credit)
	}

	if !t.taken {
		t.taken, t.virtual = true, max(t.virtual, own.tag)
		t.mu.Unlock()
		return t.begin(own), nil
	}

	ready := make(chan struct{})
	own.waiting = append(own.waiting, ready)
	t.waiting[own] = struct{}{}
	t.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, waitForTurn)
	defer cancel()
	select {
	case <-ready:
		return t.begin(own), nil
	case <-ctx.Done():
	}

	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(own.waiting, ready); i >= 0 {
		t.remove(own, i)
	} else {
		t.next() // the turn started at the same moment
	}

	return nil, ctx.Err()
}

// begin measures a turn. It counts the time of a turn after longestTurn, and the rest at its end.
func (t *Turns) begin(own *client) (end func()) {
	since, pass := time.Now(), sync.OnceFunc(t.pass)
	count := func() {
		t.mu.Lock()
		now := time.Now()
		took := max(now.Sub(since), leastTurn)
		since = now
		own.tag += took
		t.used, t.asOf = t.usage(now)+took, now
		t.sincePause += took
		t.mu.Unlock()
		pass()
	}

	timer := time.AfterFunc(longestTurn, count)
	return sync.OnceFunc(func() {
		timer.Stop()
		count()
	})
}

func (t *Turns) usage(now time.Time) time.Duration {
	return time.Duration(float64(t.used) * math.Exp(-float64(now.Sub(t.asOf))/float64(usageDecay)))
}

// pass starts the next turn, after a pause if one is necessary.
func (t *Turns) pass() {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := min(t.sincePause, longestPause)
	if pause < shortestPause || t.usage(time.Now()) <= unpaced {
		t.next()
		return
	}

	t.sincePause = 0
	time.AfterFunc(pause, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.next()
	})
}

// next starts the turn of a waiting client. The caller holds the lock.
func (t *Turns) next() {
	if t.taken = len(t.waiting) > 0; !t.taken {
		return
	}

	t.passed++
	round := t.passed%roundEvery == 0
	first := slices.MinFunc(slices.Collect(maps.Keys(t.waiting)), func(a, b *client) int {
		if round {
			return cmp.Compare(a.last, b.last)
		}
		return cmp.Compare(a.tag, b.tag)
	})
	if round {
		first.last = t.passed
	}

	t.virtual = max(t.virtual, first.tag)
	close(first.waiting[0])
	t.remove(first, 0)
}

// remove removes a waiting turn. The caller holds the lock.
func (t *Turns) remove(own *client, i int) {
	own.waiting = slices.Delete(own.waiting, i, i+1)
	if len(own.waiting) == 0 {
		delete(t.waiting, own)
	}
}

// serve calls a handler in a turn of the client, or answers with 429 if it gets none in time.
func (t *Turns) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	end, err := t.take(r.Context(), hostOf(r.RemoteAddr))
	if err != nil {
		refuse(w, "too many requests are being answered; try again later")
		return
	}

	defer end()
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), turnKey{}, end)))
}

// refuse answers a request that the client can repeat later.
func refuse(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, message, http.StatusTooManyRequests)
}

type turnKey struct{}

// EndTurn ends the turn of a request. A handler calls it before it waits.
func EndTurn(ctx context.Context) {
	if end, ok := ctx.Value(turnKey{}).(func()); ok {
		end()
	}
}
