package storagemigration

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

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
