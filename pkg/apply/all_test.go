package apply

import (
	"context"
	"errors"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestWhatStartsOver verifies that an error of an independent child ends ApplyAll if the state of
// the cluster is not what the declaration assumes. Each other error is a failure of that child
// alone.
func TestWhatStartsOver(t *testing.T) {
	resource := schema.GroupResource{Resource: "services"}
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "create", resource, "web", "404 page not found", 0, true)
	const terminating = "create not allowed while custom resource definition is terminating"
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"another client was faster":            {apierrors.NewConflict(resource, "web", errors.New("changed")), true},
		"the kind is not installed":            {unserved, true},
		"the namespace does not exist":         {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop"), false},
		"the definition has no versions":       {apierrors.NewMethodNotSupported(resource, "create"), true},
		"the definition is being deleted":      {apierrors.NewForbidden(resource, "web", errors.New(terminating)), true},
		"a quota is exceeded":                  {apierrors.NewForbidden(resource, "web", errors.New("exceeded quota")), false},
		"the API server does not accept it":    {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", nil), false},
		"the API server does not answer today": {apierrors.NewServiceUnavailable("overloaded"), false},
	} {
		t.Run(name, func(t *testing.T) {
			applier, counted := newApplier(interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
					if _, isService := object.(*corev1.Service); isService {
						return test.err
					}
					return c.Create(ctx, object, opts...)
				},
			})
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			applied, err := applier.ApplyAll(t.Context(), owner, nil, nil, nil, []client.Object{service, deployment()})
			if StartsOver(err) != test.want || (len(applied.Failures) == 0) != test.want || (counted["create Deployment"] == 0) != test.want {
				t.Errorf("error %v, failures %v, writes %v", err, applied.Failures, counted)
			}
		})
	}
}
