package e2e

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
)

// largeWriters is the number of concurrent writers of objects that keep the API server busy for
// seconds. smallWriters is the number for other objects.
const largeWriters, smallWriters = 4, 16

// tenant is the attacker: a ServiceAccount with the ClusterRole edit in one namespace.
type tenant struct {
	client.Client
	namespace string
}

func newTenant(t *testing.T) *tenant {
	t.Helper()
	namespace := newNamespace(t, restricted)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant"}}
	must(t, suite.admin.Create(t.Context(), account))
	kubectl(t, "create", "rolebinding", "tenant", "-n", namespace, "--clusterrole=edit", "--serviceaccount="+namespace+":tenant")
	token := &authenticationv1.TokenRequest{}
	must(t, suite.admin.SubResource("token").Create(t.Context(), account, token))
	config, err := ctrl.GetConfig()
	must(t, err)
	config = rest.AnonymousClientConfig(config)
	config.BearerToken, config.QPS, config.WarningHandler = token.Status.Token, -1, rest.NoWarnings{}
	api, err := client.New(config, client.Options{Scheme: scheme.New()})
	must(t, err)
	me := &tenant{api, namespace}
	waitFor(t, namespace, "the RBAC permissions of the tenant", patience, func(ctx context.Context) error {
		return me.List(ctx, &v1alpha2.NginxOperatorList{}, client.InNamespace(namespace))
	})
	return me
}

// createAll requires that the API server stores each object. A busy one may need several attempts.
func (a *tenant) createAll(t *testing.T, writers int, objects []client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	err := harness.InParallel(ctx, writers, len(objects), func(ctx context.Context, i int) error {
		objects[i].SetNamespace(a.namespace)
		var refusal error
		err := eventually(ctx, func(ctx context.Context) error {
			err := client.IgnoreAlreadyExists(a.Create(ctx, objects[i]))
			if apierrors.IsInvalid(err) {
				refusal, err = err, nil
			}
			return err
		})
		return cmp.Or(refusal, err)
	})
	if err != nil {
		fatal(t, a.namespace, "the tenant cannot store an object, that shows nothing: %v", err)
	}
}

// deleteChildren deletes a child of an instance each time that the operator has recreated it.
func (a *tenant) deleteChildren(t *testing.T) {
	t.Helper()
	newInstance(t, a.namespace, victimName, 1)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: victimName}}
	for range scaled(10, 50) {
		waitFor(t, a.namespace, "a child to delete", patience, func(ctx context.Context) error { return a.Delete(ctx, service.DeepCopy()) })
	}
}

// smallObjects returns many small objects.
func smallObjects() []client.Object {
	out := make([]client.Object, scaled(100, 1000))
	for i := range out {
		out[i] = newObject("", fmt.Sprintf("small-%d", i), 0)
	}
	return out
}
