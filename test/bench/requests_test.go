//go:build bench || soak

package bench

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// request is a kind of request, by labels of the API server's metric apiserver_request_total.
type request struct {
	verb, group, resource, subresource string
}

func (r request) String() string {
	name := r.resource
	if r.group != "" {
		name += "." + r.group
	}
	if r.subresource != "" {
		name += "/" + r.subresource
	}
	return r.verb + " " + name
}

// requests counts requests by kind.
type requests map[request]int

var writeVerbs = []string{"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}

// writes returns the write requests of all clients that the API server has counted so far. It omits
// Leases, which leader election and the API server itself write.
func (e *environment) writes(t *testing.T) requests { return e.requests(t, writeVerbs...) }

// requests returns the requests with these verbs that the API server has counted so far, except
// requests for Leases.
func (e *environment) requests(t *testing.T, verbs ...string) requests {
	t.Helper()
	raw := must1(e.metrics.Get().AbsPath("/metrics").DoRaw(t.Context()))(t)
	out := requests{}
	samples := must1(harness.Samples(string(raw), "apiserver_request_total"))(t)
	for _, sample := range samples {
		labels := sample.Labels
		if slices.Contains(verbs, labels["verb"]) && labels["resource"] != "leases" {
			out[request{labels["verb"], labels["group"], labels["resource"], labels["subresource"]}] += int(sample.Value)
		}
	}
	return out
}

// auditVerbs are the verbs of the API server's metrics, by the verbs of its audit log.
var auditVerbs = map[string]string{"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}

// auditedWrites returns the operator's writes in a namespace since a time, by the audit log. The
// API server's metrics do not report by client.
func auditedWrites(t *testing.T, log, namespace string, since time.Time) requests {
	t.Helper()
	files, err := filepath.Glob(strings.TrimSuffix(log, ".log") + "*.log") // with rotated files
	must(t, err)
	out := requests{}
	for _, file := range files {
		entries := must1(apiserver.ReadAudit(file, strconv.Quote(operatorUser), strconv.Quote(namespace)))(t)
		for _, entry := range entries {
			if ref := entry.ObjectRef; entry.IsWrite() && ref.Namespace == namespace && entry.RequestReceivedTimestamp.After(since) {
				out[request{auditVerbs[entry.Verb], ref.APIGroup, ref.Resource, ref.Subresource}]++
			}
		}
	}
	return out
}

// since returns the requests since an earlier count.
func (r requests) since(before requests) requests {
	out := requests{}
	for key, n := range r {
		if n > before[key] {
			out[key] = n - before[key]
		}
	}
	return out
}

func (r requests) total() int {
	sum := 0
	for _, n := range r {
		sum += n
	}
	return sum
}

func (r requests) String() string {
	lines := make([]string, 0, len(r))
	for key := range maps.Keys(r) {
		lines = append(lines, fmt.Sprintf("%d x %s", r[key], key))
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// leaderEvent is the Event that client-go's leader election sends. It uses the core API. The
// operator's own Events use events.k8s.io.
var leaderEvent = request{"POST", "", "events", ""}

// scrapeEvery is the time between two reads of the API server's metrics. Each read takes tens of
// milliseconds of its processor.
const scrapeEvery = 2 * time.Second

// atAnyTime are the resources that nodes, and servers of metrics, write at any time.
var atAnyTime = []string{"nodes", "subjectaccessreviews", "tokenreviews"}

// waitForQuiet waits until there was no write for the duration quiet, except atAnyTime.
func (e *environment) waitForQuiet(t *testing.T, quiet, patience time.Duration) {
	t.Helper()
	waitUntilNoMore(t, quiet, patience, func() requests {
		writes := e.writes(t)
		maps.DeleteFunc(writes, func(key request, _ int) bool { return slices.Contains(atAnyTime, key.resource) })
		return writes
	})
}

// waitForLooks waits until a newly started operator has read every child.
func (e *environment) waitForLooks(t *testing.T, patience time.Duration) {
	t.Helper()
	waitUntilNoMore(t, 3*time.Second, patience, func() requests {
		reads := e.requests(t, "GET")
		for key := range reads {
			if !slices.Contains([]string{"configmaps", "services", "networkpolicies", "deployments", "poddisruptionbudgets"}, key.resource) {
				delete(reads, key)
			}
		}
		return reads
	})
}

// waitUntilNoMore waits until a count of requests has not increased for the duration quiet. It
// fails the test after patience.
func waitUntilNoMore(t *testing.T, quiet, patience time.Duration, count func() requests) {
	t.Helper()
	deadline := time.Now().Add(patience)
	last, since := count(), time.Now()
	for time.Since(since) < quiet {
		time.Sleep(scrapeEvery)
		now := count()
		if more := now.since(last); more.total() > 0 {
			if time.Now().After(deadline) {
				t.Fatalf("no end after %s: %s", patience, more)
			}
			last, since = now, time.Now()
		}
	}
}
