package e2e

// This file has the clients that go on while the operator is upgraded: they read and write objects all the time and
// notice every answer that fails, or is wrong.

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

// readInterval is that of a client which reads fifty times a second.
const readInterval = 20 * time.Millisecond

// definitions is the resource of which the API's definition is one.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// readsAtOnce bounds how many reads overlap.
const readsAtOnce = 20

// rawClient sends requests as they are, without discovery and limits that would hide a failure. Like every client of
// client-go it comes again where the API server asks for that (Retry-After), which it does while it rebuilds its storage
// for a changed definition.
func rawClient() (rest.Interface, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = 10 * time.Second
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = clientgoscheme.Codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// reader lists the objects of a namespace in one version, again and again. What it reads has to be right from the
// beginning; that reads succeed is asked for from the moment that strictly is called.
type reader struct {
	version   string
	namespace string
	// ports has the port of each object that was there at the start.
	ports map[string]int32
	api   rest.Interface
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu sync.Mutex
	// strict: from now on a failure counts.
	strict                   bool
	total, failed, early     int
	wrong                    int
	firstFailure, firstWrong string
	lastSuccess              time.Time
	longestGap               time.Duration
}

// startReader begins to read. It ends with finish, or with the test.
func startReader(t *testing.T, namespace, version string, ports map[string]int32) *reader {
	t.Helper()
	api, err := rawClient()
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &reader{version: version, namespace: namespace, ports: ports, api: api, stop: cancel}
	t.Cleanup(func() { cancel(); r.done.Wait() })
	r.done.Go(func() {
		ticker := time.NewTicker(readInterval)
		defer ticker.Stop()
		running := make(chan struct{}, readsAtOnce)
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// A list waits up to 100 ms until the API server is sure to know the latest, so reads overlap.
				select {
				case running <- struct{}{}:
					r.done.Go(func() {
						r.record(r.read(context.WithoutCancel(ctx)))
						<-running
					})
				default: // it is slow; more requests would not make it faster
				}
			}
		}
	})
	return r
}

// read returns what is wrong with the answer, and the error where there was none.
func (r *reader) read(ctx context.Context) (wrong string, err error) {
	raw, err := r.api.Get().AbsPath("/apis/operator.example.com", r.version, "namespaces", r.namespace, "nginxoperators").DoRaw(ctx)
	if err != nil {
		return "", err
	}
	found, err := portsOf(r.version, raw)
	if err != nil {
		return "", err
	}
	for name, want := range r.ports {
		if port, there := found[name]; !there || port != want {
			return fmt.Sprintf("%s has port %d instead of %d (there: %t)", name, port, want, there), nil
		}
	}
	return "", nil
}

// portsOf returns the port of each object of a list.
func portsOf(version string, raw []byte) (map[string]int32, error) {
	out := map[string]int32{}
	if version == v1alpha1.GroupVersion.Version {
		list := &v1alpha1.NginxOperatorList{}
		if err := json.Unmarshal(raw, list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out[list.Items[i].Name] = ptr.Deref(list.Items[i].Spec.Port, 0)
		}
		return out, nil
	}
	list := &v1alpha2.NginxOperatorList{}
	if err := json.Unmarshal(raw, list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		out[list.Items[i].Name] = 0
		if ports := list.Items[i].Spec.Ports; len(ports) > 0 {
			out[list.Items[i].Name] = ports[0].Port
		}
	}
	return out, nil
}

func (r *reader) record(wrong string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.strict {
		r.total++
		if !r.lastSuccess.IsZero() {
			r.longestGap = max(r.longestGap, now.Sub(r.lastSuccess))
		}
	}
	switch {
	case wrong != "":
		r.wrong++
		if r.firstWrong == "" {
			r.firstWrong = wrong
		}
	case err != nil && r.strict:
		r.failed++
		if r.firstFailure == "" {
			r.firstFailure = err.Error()
		}
	case err != nil:
		r.early++
	default:
		r.lastSuccess = now
	}
}

// strictly makes failures count from now on.
func (r *reader) strictly() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strict, r.lastSuccess = true, time.Time{}
}

// finish ends the reading and requires that no answer was wrong, and that none failed since strictly.
func (r *reader) finish(t *testing.T, during string) {
	t.Helper()
	r.stop()
	r.done.Wait()
	t.Logf("FIGURE reads at %s %s: %d, %d failed, %d wrong, longest time between two answers %d ms (%d failed before the version was there)",
		r.version, during, r.total, r.failed, r.wrong, r.longestGap.Milliseconds(), r.early)
	if r.wrong > 0 {
		t.Errorf("%d answers at %s were wrong, the first: %s", r.wrong, r.version, r.firstWrong)
	}
	if r.failed > 0 {
		t.Errorf("%d of %d reads at %s failed, the first: %s", r.failed, r.total, r.version, r.firstFailure)
	}
	if r.total < 50 {
		t.Errorf("only %d reads were made at %s, that shows nothing", r.total, r.version)
	}
}

// writer changes one object at v1alpha1 again and again, and looks at what it wrote. It has no operands.
type writer struct {
	object        *v1alpha1.NginxOperator
	stop          context.CancelFunc
	done          sync.WaitGroup
	total, failed int
	first         string
}

// startWriter begins to write. It ends with finish, or with the test.
func startWriter(t *testing.T, namespace string) *writer {
	t.Helper()
	object := newV1alpha1(namespace, "written", 9999, 0)
	must(t, suite.admin.Create(t.Context(), object))
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{object: object, stop: cancel}
	t.Cleanup(func() { cancel(); w.done.Wait() })
	w.done.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			w.total++
			if err := w.write(context.WithoutCancel(ctx), fmt.Sprint(n)); err != nil {
				w.failed++
				if w.first == "" {
					w.first = err.Error()
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	return w
}

func (w *writer) write(ctx context.Context, value string) error {
	before := w.object.DeepCopy()
	w.object.Spec.ForceRedeploy = value
	if err := suite.admin.Patch(ctx, w.object, client.MergeFrom(before)); err != nil {
		return err
	}
	if w.object.Spec.ForceRedeploy != value || ptr.Deref(w.object.Spec.Port, 0) != 9999 {
		return fmt.Errorf("after the write of %s the object has %+v", value, w.object.Spec)
	}
	return nil
}

// finish ends the writing and requires that no write failed.
func (w *writer) finish(t *testing.T, during string) {
	t.Helper()
	w.stop()
	w.done.Wait()
	t.Logf("FIGURE writes at v1alpha1 %s: %d, %d failed", during, w.total, w.failed)
	if w.failed > 0 {
		t.Errorf("%d of %d writes at v1alpha1 failed, the first: %s", w.failed, w.total, w.first)
	}
	if w.total < 20 {
		t.Errorf("only %d writes were made, that shows nothing", w.total)
	}
}

func newV1alpha1(namespace, name string, port, replicas int32) *v1alpha1.NginxOperator {
	return &v1alpha1.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.NginxOperatorSpec{Port: &port, Replicas: &replicas},
	}
}

// watchDefinition logs, until the test ends or it is stopped, each change of the CustomResourceDefinition that has to
// do with versions and conversion.
func watchDefinition(t *testing.T) (stop func()) {
	t.Helper()
	config, err := ctrl.GetConfig()
	must(t, err)
	api, err := dynamic.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	events, err := api.Resource(definitions).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crdName})
	must(t, err)
	var done sync.WaitGroup
	var seen []string
	began, last := time.Now(), ""
	done.Go(func() {
		for event := range events.ResultChan() {
			definition, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				continue
			}
			if now := conversionOf(definition); now != last {
				seen = append(seen, fmt.Sprintf("%7.3f s  %s", time.Since(began).Seconds(), now))
				last = now
			}
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		events.Stop()
		done.Wait()
		t.Logf("FIGURE what happened to the CustomResourceDefinition:\n%s", strings.Join(seen, "\n"))
	})
}

// conversionOf describes how a definition converts, in a line. A certificate is told by its last characters.
func conversionOf(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	var names []string
	for _, version := range versions {
		version := &unstructured.Unstructured{Object: version.(map[string]any)}
		name := text(version, "name")
		if stored, _, _ := unstructured.NestedBool(version.Object, "storage"); stored {
			name += " (stored)"
		}
		names = append(names, name)
	}
	ca := text(definition, "spec", "conversion", "webhook", "clientConfig", "caBundle")
	if ca == "" {
		ca = "none"
	} else {
		ca = fmt.Sprintf("%d bytes ...%s", len(ca), ca[max(0, len(ca)-12):])
	}
	service := text(definition, "spec", "conversion", "webhook", "clientConfig", "service", "name")
	return fmt.Sprintf("versions %s; strategy %s, service %q, caBundle %s", strings.Join(names, ", "), text(definition, "spec", "conversion", "strategy"), service, ca)
}
