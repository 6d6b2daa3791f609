//go:build matrix

package integration

import (
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// TestEveryFieldCanBeChanged verifies that test/harness/mutate finds another valid value for each
// field of the schema, which the part subscription of the nightly run uses. A new field without
// another valid value fails here.
func TestEveryFieldCanBeChanged(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: wellknown.CRDName}, crd))
	properties := must1(mutate.SpecSchema(crd, v1alpha2.GroupVersion.Version))(t)
	object := newInstance(namespace, "web")
	object.Spec = mutate.InstanceSpec()
	create(t, object)
	strict := client.WithFieldValidation(suite.admin, "Strict")
	fields := must1(mutate.InstanceFields(properties))(t)
	var tried atomic.Int32
	var group errgroup.Group
	group.SetLimit(4)
	for _, f := range fields {
		group.Go(func() error {
			last := errors.New("there is no other value")
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(v1alpha2.GroupVersion.WithKind("NginxOperator"))
			read := func() error { return suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), live) }
			if err := read(); err != nil {
				return err
			}
			for candidate := range f.Valid() {
				last = harness.RetryOnConflict(func() error {
					changed := live.DeepCopy()
					changed.Object["spec"] = candidate
					tried.Add(1)
					err := strict.Update(t.Context(), changed, client.DryRunAll)
					if apierrors.IsConflict(err) {
						return errors.Join(read(), err)
					}
					return err
				})
				if last == nil {
					return nil
				}
			}
			t.Errorf("%s cannot be changed: %v", f.Path, last)
			return nil
		})
	}
	must(t, group.Wait())
	t.Logf("%d fields, %d tries", len(fields), tried.Load())
	if len(fields) < 50 {
		t.Errorf("the schema has only %d fields", len(fields))
	}
}
