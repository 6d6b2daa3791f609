package optional

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestClient verifies that requests for the kind use the kind's own client while the kind is
// served, and fail otherwise. A pending call ends when the kind is no longer served.
func TestClient(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	api := &API{options: Options{Kind: kind, Resource: "secrets"}, scheme: clientgoscheme.Scheme}
	waits := make(chan struct{}, 1)
	own := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if key.Name == "slow" {
				waits <- struct{}{}
				<-ctx.Done()
				return ctx.Err()
			}
			return c.Get(ctx, key, object, options...)
		},
	}).Build()
	others := fake.NewClientBuilder().Build()
	c := NewClient(others, api)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	key := client.ObjectKeyFromObject(secret)
	calls := map[string]func() error{
		"create": func() error { return c.Create(t.Context(), secret.DeepCopy()) },
		"get":    func() error { return c.Get(t.Context(), key, &corev1.Secret{}) },
		"patch": func() error {
			return c.Patch(t.Context(), secret.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte("{}")))
		},
		"delete": func() error { return c.Delete(t.Context(), secret.DeepCopy()) },
	}
	for verb, call := range calls {
		if err := call(); !meta.IsNoMatchError(err) {
			t.Errorf("%s of what is not served: %v", verb, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	api.set(t.Context(), &period{ended, own}, "served")
	for _, verb := range []string{"create", "get", "patch"} {
		if err := calls[verb](); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if err := own.Get(t.Context(), key, &corev1.Secret{}); err != nil {
		t.Errorf("it was not created by the client of its own: %v", err)
	}
	if err := calls["delete"](); err != nil {
		t.Errorf("delete: %v", err)
	}
	configMap := &corev1.ConfigMap{ObjectMeta: secret.ObjectMeta}
	if err := c.Create(t.Context(), configMap); err != nil {
		t.Error(err)
	}
	if err := others.Get(t.Context(), key, configMap); err != nil {
		t.Errorf("another kind was not created by the client for all others: %v", err)
	}
	result := make(chan error, 1)
	go func() {
		result <- c.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "slow"}, &corev1.Secret{})
	}()
	<-waits
	end()
	if err := <-result; !meta.IsNoMatchError(err) {
		t.Errorf("a call that waited: %v", err)
	}
}

// TestSet verifies that an ended period changes nothing, and that only a different problem counts
// as a change.
func TestSet(t *testing.T) {
	api := &API{problem: "unknown"}
	ended, end := context.WithCancel(t.Context())
	end()
	if api.set(ended, &period{}, "") || api.current() != nil || api.Problem() != "unknown" {
		t.Error("a period that has ended began")
	}
	for _, step := range []struct {
		now     *period
		problem string
		news    bool
	}{{nil, "unknown", false}, {&period{}, "", true}, {nil, "gone", true}, {nil, "gone", false}} {
		if news := api.set(t.Context(), step.now, step.problem); news != step.news || api.Problem() != step.problem || api.current() != step.now {
			t.Errorf("%+v: news %t, problem %q, now %v", step, news, api.Problem(), api.current())
		}
	}
}
