package storagemigration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// widgetKind is the kind of the objects, and crdName is the name of its CRD.
var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: newer, Kind: "Widget"}

const crdName = "widgets.example.com"

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(widgetKind, &metav1.PartialObjectMetadata{})
	scheme.AddKnownTypeWithName(widgetKind.GroupVersion().WithKind("WidgetList"), &metav1.PartialObjectMetadataList{})
	return scheme
}

func newWidget(name string) *metav1.PartialObjectMetadata {
	widget := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	widget.Labels = map[string]string{"a": "b"}
	widget.SetGroupVersionKind(widgetKind)
	return widget
}

// rewriterWith returns a rewriter for a number of objects, and the number of writes. Each write
// gets the result of answer.
func rewriterWith(t *testing.T, objects int, answer func(name string) error) (*rewriter, *atomic.Int32) {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(newScheme())
	for i := range objects {
		builder = builder.WithObjects(newWidget(fmt.Sprintf("web-%03d", i)))
	}
	writes := &atomic.Int32{}
	builder = builder.WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(
			_ context.Context, _ client.Client, subresource string, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			writes.Add(1)
			data, err := patch.Data(object)
			if err != nil || subresource != "status" || !strings.HasPrefix(string(data), `{"metadata":{"resourceVersion":"`) {
				t.Errorf("a patch of %s: %s, %v", subresource, data, err)
			}
			return answer(object.GetName())
		},
	})
	return &rewriter{client: builder.Build(), kind: widgetKind}, writes
}

// TestRefusedObjectsAreNamed verifies that a refused object does not stop the others. An object
// that changed or was deleted counts as rewritten, and a denial does not, whatever its code.
func TestRefusedObjectsAreNamed(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	r, writes := rewriterWith(t, 30, func(name string) error {
		switch name {
		case "web-004":
			return apierrors.NewForbidden(resource, name, errors.New("a policy"))
		case "web-007":
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Code: http.StatusConflict, Message: `admission webhook "policy.example.com" denied the request: a policy`,
			}}
		case "web-011":
			return apierrors.NewConflict(resource, name, errors.New("it changed"))
		case "web-012":
			return apierrors.NewNotFound(resource, name)
		}
		return nil
	})
	p := rewriteProgress{}
	err := r.rewrite(t.Context(), &p)
	if err != nil || p.rewritten != 28 || writes.Load() != 30 {
		t.Errorf("%d of %d writes, %v", p.rewritten, writes.Load(), err)
	}
	if failed := p.failed; len(failed) != 2 || !strings.HasPrefix(failed[0].String(), "shop/web-004: ") ||
		!strings.Contains(failed[1].String(), "shop/web-007: ") || !strings.Contains(failed[1].String(), "a policy") {
		t.Errorf("refused: %v", failed)
	} else if object := failed[0].object; object.Labels != nil || object.GroupVersionKind() != widgetKind {
		t.Errorf("more than the identity is kept, or less: %v", object)
	}
	// Only the refused objects are retried.
	err = r.rewrite(t.Context(), &p)
	if err != nil || writes.Load() != 32 || len(p.failed) != 2 {
		t.Errorf("the second time %d writes in all, %v, %v", writes.Load(), p.failed, err)
	}
}

// TestPassingFailures verifies that a few temporary failures do not end a rewrite.
func TestPassingFailures(t *testing.T) {
	n := atomic.Int32{}
	r, _ := rewriterWith(t, 100, func(string) error {
		if n.Add(1)%2 == 0 {
			return apierrors.NewInternalError(errors.New("no webhook answers"))
		}
		return nil
	})
	p := rewriteProgress{}
	if err := r.rewrite(t.Context(), &p); err != nil || p.rewritten != 50 || len(p.failed) != 50 {
		t.Errorf("%d objects, %d refused, %v", p.rewritten, len(p.failed), err)
	}
}

func TestDescribe(t *testing.T) {
	var failed []refused
	for i := range 5 {
		object := &metav1.PartialObjectMetadata{}
		object.Namespace, object.Name = "shop", fmt.Sprintf("web-%d", i)
		failed = append(failed, refused{object, errors.New("refused")})
	}
	const want = "failed to rewrite 5 objects, retrying: " +
		"shop/web-0: refused; shop/web-1: refused; shop/web-2: refused; and 2 more"
	if got := describe(failed).Error(); got != want {
		t.Errorf("%s", got)
	}
}

// TestWakeInNamespaces verifies that an operator for some namespaces wakes the migrator with an
// object of these namespaces, and passes over a namespace without objects.
func TestWakeInNamespaces(t *testing.T) {
	for name, test := range map[string]struct{ namespaces, lists, writes []string }{
		"all namespaces":  {nil, []string{"", ""}, []string{"shop/web", "shop/web"}},
		"some namespaces": {[]string{"empty", "shop"}, []string{"empty", "shop", "empty", "shop"}, []string{"shop/web", "shop/web"}},
		"no objects":      {[]string{"empty"}, []string{"empty", "empty"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var lists, writes []string
			objects := fake.NewClientBuilder().WithScheme(newScheme()).
				WithObjects(newWidget("web")).
				WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
						lists = append(lists, (&client.ListOptions{}).ApplyOptions(options).Namespace)
						return c.List(ctx, list, options...)
					},
					SubResourcePatch: func(
						_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption,
					) error {
						writes = append(writes, client.ObjectKeyFromObject(object).String())
						return nil
					},
				}).Build()
			r := &Reconciler{Client: objects, Target: widgetKind, Namespaces: test.namespaces}
			r.wake(t.Context())
			r.wake(t.Context())
			if !slices.Equal(lists, test.lists) || !slices.Equal(writes, test.writes) {
				t.Errorf("lists in %q, writes of %q", lists, writes)
			}
		})
	}
}

// TestRemedyForSomeNamespaces verifies that an operator for some namespaces, which may not list all
// objects, names the missing permission. Other errors and other operators get no remedy.
func TestRemedyForSomeNamespaces(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("at the cluster scope"))
	for name, test := range map[string]struct {
		namespaces []string
		err        error
		remedy     bool
	}{
		"some namespaces": {[]string{"shop"}, forbidden, true},
		"all namespaces":  {nil, forbidden, false},
		"another error":   {[]string{"shop"}, errors.New("timeout"), false},
	} {
		err := (&Reconciler{Namespaces: test.namespaces, ClusterRole: "manager"}).withRemedy(test.err)
		if !errors.Is(err, test.err) || strings.Contains(err.Error(), "bind ClusterRole manager to") != test.remedy {
			t.Errorf("%s: %v", name, err)
		}
	}
}
