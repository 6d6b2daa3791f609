package e2e

// Changes of fields under load.
//
//   - Clients load each port, half of them with a new connection for each request. A field changes
//     to another valid value and back, alone and together with an image that cannot be pulled. No
//     request fails on a port that both specs serve.
//
// The fields come from the CRD (test/harness/mutate). A new field needs no new case here, and a
// field that cannot be changed fails the test. The gate changes the fields of ports, and nightly
// changes all fields, except those deep in a Pod (onlyPods).

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/preview"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/test/harness/mutate"
)

const (
	// fieldsAtATime is how many fields change at the same time, each on its own instance.
	fieldsAtATime = 4
	// settles is how long the load continues after the operator has finished, so that the nodes
	// apply the change under load.
	settles = 2 * time.Second
)

// fieldsOfPorts are the fields that the gate changes.
var fieldsOfPorts = []string{"none of ports", "ports[0].name", "ports[0].port", "ports[0].targetPort"}

// onlyPods are the fields of spec that change only the Pods. Nightly skips fields that are more
// than one level below them: the operator applies each of them as the same change of the
// Deployment.
var onlyPods = []string{
	"env", "files", "initContainers", "patches", "podTemplate", "resources", "securityContext", "sidecars", "volumes",
}

func testFieldsOfPorts(t *testing.T) {
	testFields(t, len(fieldsOfPorts), func(path string) bool { return slices.Contains(fieldsOfPorts, path) })
}

func testAllFields(t *testing.T) {
	testFields(t, 100, func(path string) bool {
		parent, _, _ := strings.Cut(path, ".")
		parent, _, _ = strings.Cut(parent, "[")
		return !slices.Contains(onlyPods, parent) || strings.Count(path, ".") < 2
	})
}

// testFields changes the fields whose path is selected.
func testFields(t *testing.T, least int, selected func(path string) bool) {
	crd, err := readCRD(t.Context())
	must(t, err)
	schema, err := mutate.SpecSchema(crd, v1alpha2.GroupVersion.Version)
	must(t, err)
	fields, err := mutate.InstanceFields(schema)
	must(t, err)
	fields = slices.DeleteFunc(fields, func(field mutate.Field) bool { return !selected(field.Path) })
	if len(fields) < least {
		t.Errorf("there are %d fields, want at least %d", len(fields), least)
	}
	for batch := range slices.Chunk(fields, fieldsAtATime) {
		t.Run("fields", func(t *testing.T) {
			for _, field := range batch {
				t.Run(field.Path, func(t *testing.T) { t.Parallel(); changeUnderLoad(t, field) })
			}
		})
	}
}

// changeUnderLoad changes one field of an instance and back, alone and with an image that cannot be
// pulled, which the operator rolls back. If the field belongs to ports, a full run repeats the
// change with the image without automatic rollback.
func changeUnderLoad(t *testing.T, field mutate.Field) {
	namespace := newNamespace(t, restricted)
	newConfigMap(t, namespace, mutate.InstanceContent, "index.html", mutate.InstancePage)
	newSecret(t, namespace, mutate.InstanceSecret)
	createOthers(t, namespace)
	object := newObject(namespace, "web", 1)
	object.Spec = mutate.InstanceSpec()
	pods := int32(1)
	if field.Path == "rollout.maxUnavailable" { // it must leave a Pod that serves
		pods = 3
	}
	object.Spec.Replicas = ptr.To(pods)
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	before := object.Spec.DeepCopy()
	changed, err := firstTaken(t.Context(), object, field)
	if err != nil {
		fatal(t, namespace, "%s cannot be changed: %v", field.Path, err)
	}
	if pods > 1 { // the candidates have one
		changed.Replicas = ptr.To(pods)
	}
	broken := changed.DeepCopy()
	broken.Image = missingImage
	var loads []*load
	for _, number := range servedByBoth(before, changed) {
		url := suite.reach.service(namespace, "web", number)
		if slices.ContainsFunc(defaults.TLS(before), func(tls v1alpha2.TLS) bool { return tls.Port != nil && *tls.Port == number }) {
			url = suite.reach.secure(namespace, "web", number)
		}
		loads = append(loads, startLoadOf(t, namespace, url, mutate.InstancePage))
	}
	steps := []*v1alpha2.NginxOperatorSpec{changed, before, broken, before}
	if suite.full && strings.Contains(field.Path, "ports") {
		stuck := broken.DeepCopy()
		stuck.Rollout = &v1alpha2.Rollout{AutomaticRollback: ptr.To(false)}
		steps = append(steps, stuck, before)
	}
	for _, next := range steps {
		update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec = *next.DeepCopy() })
		waitFor(t, namespace, "the change of "+field.Path+" to end or to be stuck", 2*patience, func(ctx context.Context) error {
			return hasSettled(ctx, object)
		})
		time.Sleep(settles) // the load in this time must not fail
	}
	waitForReady(t, object)
	waitForOnly(t, object, int(*object.Spec.Replicas))
	for _, load := range loads {
		load.finish(t, namespace, "load of "+load.url+" while "+field.Path+" changes")
	}
}

// createOthers creates a ConfigMap and a Secret that every reference can use.
func createOthers(t *testing.T, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: mutate.InstanceOther}
	must(t, suite.admin.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta, Data: mutate.InstanceOtherData()}))
	must(t, suite.admin.Create(t.Context(), &corev1.Secret{
		ObjectMeta: meta, Type: corev1.SecretTypeTLS, Data: newCertificate(t, "other.example.com"), StringData: mutate.InstanceOtherData(),
	}))
}

// firstTaken returns the first candidate of a field that the API server accepts, for the object and
// its children, and that has at least one replica.
func firstTaken(ctx context.Context, object *v1alpha2.NginxOperator, field mutate.Field) (*v1alpha2.NginxOperatorSpec, error) {
	planner := &preview.Planner{Client: suite.admin}
	last := errors.New("there is no other value")
	for candidate := range field.Valid() {
		spec := &v1alpha2.NginxOperatorSpec{}
		if last = runtime.DefaultUnstructuredConverter.FromUnstructured(candidate, spec); last != nil {
			continue
		}
		if defaults.Replicas(spec) == 0 {
			last = errors.New("with no replicas nothing serves")
			continue
		}
		tried := object.DeepCopy()
		tried.Spec = *spec
		if last = suite.admin.Update(ctx, tried, client.DryRunAll); last != nil {
			continue
		}
		planned, err := planner.PlanInstance(ctx, tried, nil)
		if err == nil && len(planned.BlockedBy) == 0 {
			return spec, nil
		}
		last = errors.Join(err, fmt.Errorf("the operator could not apply it: %v", planned.BlockedBy))
	}
	return nil, last
}

// servedByBoth returns the port numbers that two specs serve in the same way, as HTTP or as HTTPS.
func servedByBoth(a, b *v1alpha2.NginxOperatorSpec) []int32 {
	var out []int32
	for _, port := range defaults.Ports(a) {
		if slices.ContainsFunc(defaults.Ports(b), func(other v1alpha2.Port) bool { return other.Port == port.Port }) {
			out = append(out, port.Port)
		}
	}
	for _, tls := range defaults.TLS(a) {
		same := func(other v1alpha2.TLS) bool { return other.Port != nil && *other.Port == *tls.Port }
		if tls.Port != nil && slices.ContainsFunc(defaults.TLS(b), same) {
			out = append(out, *tls.Port)
		}
	}
	return out
}

// hasSettled returns an error until the operator has finished the current generation: the object is
// Ready, Degraded, or paused.
func hasSettled(ctx context.Context, object *v1alpha2.NginxOperator) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	for _, conditionType := range []string{v1alpha2.ConditionReady, v1alpha2.ConditionDegraded} {
		found := meta.FindStatusCondition(object.Status.Conditions, conditionType)
		if found != nil && found.ObservedGeneration == object.Generation &&
			(found.Status == metav1.ConditionTrue || found.Reason == v1alpha2.ReasonPaused) {
			return nil
		}
	}
	return fmt.Errorf("%s is neither ready nor stuck: %+v", object.Name, object.Status.Conditions)
}
