package objectcache

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
)

// namespaceServer is an API server with one NginxOperator in each of three namespaces. It records
// the lists that it answers.
type namespaceServer struct {
	mu    sync.Mutex
	lists []string
}

// namespacesOfServer are the namespaces that have an NginxOperator. Its replicas are a text in the
// last one, so a client that decodes whole lists cannot read the list.
var namespacesOfServer = map[string]string{"foreign": "1", "shop": "1", "web": `"many"`}

func (s *namespaceServer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if request.URL.Query().Get("watch") != "" {
		if request.URL.Query().Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity) // like a server that cannot stream lists
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
			return
		}
		w.(http.Flusher).Flush()
		<-request.Context().Done()
		return
	}
	s.mu.Lock()
	s.lists = append(s.lists, request.URL.Path)
	s.mu.Unlock()
	var items []string
	if strings.HasSuffix(request.URL.Path, "/nginxoperators") {
		for namespace, replicas := range namespacesOfServer {
			if !strings.Contains(request.URL.Path, "/namespaces/") || strings.Contains(request.URL.Path, "/namespaces/"+namespace+"/") {
				items = append(items, fmt.Sprintf(`{"metadata":{"namespace":%q,"name":"web","uid":"u"},"spec":{"replicas":%s}}`, namespace, replicas))
			}
		}
	}
	_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"7"},"items":[%s]}`, strings.Join(items, ","))
}

// mapperOf knows the kinds of cache options without an API server.
func mapperOf(t *testing.T, options cache.Options) meta.RESTMapper {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	for object := range options.ByObject {
		kind, err := apiutil.GVKForObject(object, options.Scheme)
		if err != nil {
			t.Fatal(err)
		}
		scope := meta.RESTScopeNamespace
		if _, isCRD := object.(*apiextensionsv1.CustomResourceDefinition); isCRD {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
		mapper.Add(kind.GroupVersion().WithKind(kind.Kind+"List"), scope)
	}
	return mapper
}

// TestCacheOfNamespaces verifies that the cache lists every kind in the watched namespaces only, or
// once for all namespaces, and has the objects of these namespaces, including unreadable ones.
func TestCacheOfNamespaces(t *testing.T) {
	for _, watched := range [][]string{nil, {"shop", "web"}} {
		t.Run(strings.Join(watched, ","), func(t *testing.T) {
			api := &namespaceServer{}
			server := httptest.NewServer(api)
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL}
			newInformer, err := Informers(config, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			options := CacheOptions(watched...)
			options.NewInformer, options.Scheme = newInformer, scheme.New()
			options.Mapper = mapperOf(t, options)
			objects, err := cache.New(config, options)
			if err != nil {
				t.Fatal(err)
			}
			for object := range options.ByObject {
				if _, err := objects.GetInformer(t.Context(), object, cache.BlockUntilSynced(false)); err != nil {
					t.Fatal(err)
				}
			}
			go func() { _ = objects.Start(t.Context()) }()
			if !objects.WaitForCacheSync(t.Context()) {
				t.Fatal("the cache is not filled")
			}

			for namespace := range namespacesOfServer {
				key := types.NamespacedName{Namespace: namespace, Name: "web"}
				err := objects.Get(t.Context(), key, &v1alpha2.NginxOperator{})
				if isWatched := watched == nil || slices.Contains(watched, namespace); isWatched != (err == nil) {
					t.Errorf("namespace %s: %v", namespace, err)
				}
			}
			list := &v1alpha2.NginxOperatorList{}
			if err := objects.List(t.Context(), list, client.UnsafeDisableDeepCopy); err != nil {
				t.Fatal(err)
			}
			want := cmp.Or(len(watched), len(namespacesOfServer))
			if len(list.Items) != want {
				t.Errorf("the cache has %d objects, want %d", len(list.Items), want)
			}
			requireInstances(t, NewInstances(objects, nil), want)
			requireListsIn(t, api.lists, watched, len(options.ByObject))
		})
	}
}

// requireInstances verifies that all NginxOperators are known from the start of a leader on.
func requireInstances(t *testing.T, instances *Instances, want int) {
	t.Helper()
	if _, complete := instances.List(t.Context()); complete {
		t.Error("the instances are known before the start")
	}
	if err := instances.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, complete := instances.List(t.Context())
	names, err := instances.Names(t.Context())
	if len(list) != want || !complete || len(names) != want || err != nil || instances.Waiting() != 0 {
		t.Errorf("instances %+v, complete %t; names %v, %v; %d wait", list, complete, names, err, instances.Waiting())
	}
}

// requireListsIn requires one list of the CRDs, and for every other kind one list for each
// namespace, or a single one for all namespaces.
func requireListsIn(t *testing.T, lists, namespaces []string, kinds int) {
	t.Helper()
	for _, path := range lists {
		if strings.Contains(path, "/namespaces/") != (namespaces != nil) && !strings.HasSuffix(path, "/customresourcedefinitions") {
			t.Errorf("list of %s", path)
		}
		if strings.Contains(path, "/namespaces/foreign/") {
			t.Errorf("list of a foreign namespace: %s", path)
		}
	}
	if expected := 1 + (kinds-1)*max(len(namespaces), 1); len(lists) != expected {
		t.Errorf("%d lists, want %d: %v", len(lists), expected, lists)
	}
}
