package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestStoredVersionsOfAllPages verifies that StoredVersions reads etcd page by page, and that
// Compact sends the current revision.
func TestStoredVersionsOfAllPages(t *testing.T) {
	key := func(name string) []byte { return []byte(storedPrefix + "shop/" + name) }
	value := []byte(`{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator"}`)
	var ranges, compactions []string
	etcd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(request.URL.Path, "/v3/kv/compaction") {
			compactions = append(compactions, string(body))
			_, _ = fmt.Fprint(w, `{"header":{"revision":"1234"}}`)
			return
		}
		var asked rangeRequest
		if err := json.Unmarshal(body, &asked); err != nil {
			t.Error(err)
		}
		ranges = append(ranges, string(asked.Key))
		page, more := []keyValue{{key("a"), value}, {key("b"), value}}, true
		if string(asked.Key) == string(key("b"))+"\x00" {
			page, more = []keyValue{{key("c"), value}}, false
		}
		kvs, err := json.Marshal(page)
		if err != nil {
			t.Error(err)
		}
		_, _ = fmt.Fprintf(w, `{"header":{"cluster_id":"1","revision":"1234"},"kvs":%s,"more":%t,"count":"3"}`, kvs, more)
	}))
	defer etcd.Close()

	versions, err := StoredVersions(t.Context(), etcd.URL)
	if want := []string{"shop/a", "shop/b", "shop/c"}; err != nil || !slices.Equal(slices.Sorted(maps.Keys(versions)), want) {
		t.Errorf("%v, %v", versions, err)
	}
	if len(ranges) != 2 || ranges[0] != storedPrefix {
		t.Errorf("ranges from %q", ranges)
	}
	if err := Compact(t.Context(), etcd.URL); err != nil || !slices.Equal(compactions, []string{`{"physical":true,"revision":1234}`}) {
		t.Errorf("%q, %v", compactions, err)
	}
}
