package apply

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatStartsOver verifies that an error of an independent child ends ApplyAll if the state of
// the cluster is not what the declaration assumes. Each other error is a failure of that child
// alone. Every error of an ordered child ends ApplyAll, so that no child is written that depends on
// a missing child.
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
			applier, counted := newApplier(refusesServices(test.err))
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			_, err := applier.Apply(t.Context(), owner, nil, nil, service, deployment())
			if err == nil || !strings.Contains(err.Error(), `failed to create Service "web"`) || len(counted) > 0 {
				t.Errorf("ordered children: error %v, writes %v", err, counted)
			}
			applied, err := applier.ApplyAll(t.Context(), owner, nil, nil, nil, []client.Object{service, deployment()})
			if StartsOver(err) != test.want || (len(applied.Failures) == 0) != test.want || (counted["create Deployment"] == 0) != test.want {
				t.Errorf("error %v, failures %v, writes %v", err, applied.Failures, counted)
			}
		})
	}
}
