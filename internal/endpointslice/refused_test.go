package endpointslice

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestRefusedBridgeIsLogged verifies that a refused bridge, and a refused update of one, does not
// hold the rename, and is logged with the reason of the API server.
func TestRefusedBridgeIsLogged(t *testing.T) {
	const reason = "endpoint address 10.128.0.7 is not allowed"
	object := fixture.NewObject()
	refused := apierrors.NewForbidden(schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"}, "web-1",
		errors.New(reason))
	controllers := managedBy(endpointSliceController, sliceWith("http", 8080))
	before := managedBy(wellknown.OperatorName, sliceWith("web", 8080))
	before.Name, before.OwnerReferences = before.Name+"-renamed", ownedBy(object)
	before.Endpoints = append(before.Endpoints, discoveryv1.Endpoint{
		Addresses: []string{"192.0.2.8"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "gone", UID: "gone"},
	})
	now := operand.Running{
		Service:    []corev1.ServicePort{{Name: "http", Port: 8080}},
		Containers: []operand.ContainerPort{{Name: "http", Number: 8080, Listens: 8080}},
	}

	for name, test := range map[string]struct {
		stored []client.Object
		want   string
	}{
		"create": {[]client.Object{controllers}, "Failed to bridge a renamed port"},
		"update": {[]client.Object{controllers, before}, "Failed to update the endpoints of a renamed port"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
			r := newBridges(t, object, interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return refused },
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return refused
				},
			}, test.stored...)

			hold, _, err := r.Ensure(log.IntoContext(t.Context(), logger), object, now, []corev1.ServicePort{{Name: "web", Port: 8080}})
			if isHeld := len(test.stored) > 1; hold != isHeld || err != nil {
				t.Errorf("the rename is held: %t, %v", hold, err)
			}
			if len(lines) != 1 || !strings.Contains(lines[0], test.want) || !strings.Contains(lines[0], reason) {
				t.Errorf("log %q, want one line with %q and the reason", lines, test.want)
			}
		})
	}
}
