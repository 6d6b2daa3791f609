package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestUnusableReferences verifies that content that nginx could not use does not reach the Pods.
// The status reports the error and its place. After the content is corrected, the operator applies
// it.
func TestUnusableReferences(t *testing.T) {
	t.Parallel()
	config := func(text string) func(*testing.T, client.Object) {
		return func(_ *testing.T, object client.Object) { object.(*corev1.ConfigMap).Data["web.conf"] = text }
	}
	for name, test := range map[string]struct {
		reference string
		spoil     func(*testing.T, client.Object)
		reason    string
		message   string
	}{
		"a directive that there is not": {
			"config", config("server {\n    listen 8080;\n    lissten 1;\n}\n"), v1alpha2.ReasonInvalidConfiguration,
			`spec.config.configMapRef: ConfigMap "named", key "web.conf": line 3: unknown directive "lissten". `,
		},
		"a directive of the operator's": {
			"config", config(servers + "daemon on;\n"), v1alpha2.ReasonInvalidConfiguration,
			`key "web.conf": line 5: "daemon" directive is not allowed here: `,
		},
		"a configuration that misses a port": {
			"config", config("server {\n    listen 9999;\n}\n"), v1alpha2.ReasonInvalidConfiguration, `spec.config.configMapRef: ConfigMap "named"`,
		},
		"no configuration": {"config", config(""), v1alpha2.ReasonInvalidConfiguration, "is empty"},
		"another key": {
			"config", func(_ *testing.T, object client.Object) {
				object.(*corev1.ConfigMap).Data = map[string]string{"other.conf": servers}
			}, v1alpha2.ReasonReferenceNotFound, `spec.config.configMapRef.key: ConfigMap "named" has no key "web.conf"`,
		},
		"a certificate of another key": {
			"tls", func(t *testing.T, object client.Object) {
				object.(*corev1.Secret).Data[corev1.TLSCertKey] = newCertificate(t)[corev1.TLSCertKey]
			}, v1alpha2.ReasonInvalidReference, `spec.tls[0].secretName: Secret "named" has no usable certificate`,
		},
		"a certificate that is none": {
			"tls", func(_ *testing.T, object client.Object) {
				object.(*corev1.Secret).Data[corev1.TLSCertKey] = []byte("none")
			},
			v1alpha2.ReasonInvalidReference, `spec.tls[0].secretName: Secret "named" has no usable certificate`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reference := references[test.reference]
			namespace := newNamespace(t)
			source := reference.object(t, namespace)
			create(t, source)
			object := newInstance(namespace, "web")
			reference.spec(&object.Spec)
			create(t, object)
			before := waitForChildren(t, namespace, "web")
			update(t, source, func(o client.Object) { test.spoil(t, o) })
			waitForBlocker(t, namespace, test.reason, test.message)
			blocked := waitForGeneration(t, namespace, before.deployment.Generation)
			if reference.seen(blocked) != reference.seen(before) {
				t.Error("the Pods get what is wrong")
			}
			update(t, source, func(o client.Object) {
				mended := reference.object(t, namespace)
				reference.change(t, mended)
				switch o := o.(type) {
				case *corev1.ConfigMap:
					o.Data = mended.(*corev1.ConfigMap).Data
				case *corev1.Secret:
					o.Data = mended.(*corev1.Secret).Data
				}
			})
			after := waitForGeneration(t, namespace, before.deployment.Generation+1)
			waitForNoBlocker(t, namespace)
			if reference.seen(after) == reference.seen(before) {
				t.Error("what was mended does not reach the Deployment")
			}
		})
	}
}

// TestSecretOfAnotherType verifies that the status reports a Secret of the wrong type until it is
// recreated. If there are several blockers, the status reports all of them.
func TestSecretOfAnotherType(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	opaque := newSecret(namespace, "named", newCertificate(t))
	opaque.Type = corev1.SecretTypeOpaque
	create(t, opaque)
	object := newInstance(namespace, "web")
	references["tls"].spec(&object.Spec)
	references["config"].spec(&object.Spec)
	create(t, object)
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	if !strings.Contains(degraded.Message, "and 1 more in status.blockedBy") {
		t.Errorf("Degraded says %q", degraded.Message)
	}
	create(t, newConfigMap(namespace, "named", map[string]string{"web.conf": servers}))
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidReference, "has type Opaque")
	must(t, suite.admin.Delete(t.Context(), opaque))
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `Secret "named" not found`)
	create(t, newSecret(namespace, "named", newCertificate(t)))
	waitForChildren(t, namespace, "web")
	waitForNoBlocker(t, namespace)
}

// TestDeletedCopyComesBack verifies that the operator recreates a deleted copy from the original,
// with the same content.
func TestDeletedCopyComesBack(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	for _, name := range []string{"config", "content"} {
		references[name].spec(&object.Spec)
	}
	source := newConfigMap(namespace, "named", map[string]string{"web.conf": servers, "index.html": "<p>one"})
	create(t, source)
	create(t, object)
	before := waitForChildren(t, namespace, "web")
	if len(before.configMaps) != 2 {
		t.Fatalf("%d ConfigMaps", len(before.configMaps))
	}
	for i := range before.configMaps {
		deleted := &before.configMaps[i]
		must(t, suite.admin.Delete(t.Context(), deleted))
		waitFor(t, func() error {
			again := &corev1.ConfigMap{}
			if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(deleted), again); err != nil {
				return err
			}
			if diff := cmp.Diff(deleted.Data, again.Data); diff != "" || again.UID == deleted.UID {
				t.Errorf("%s (-before +after):\n%s", again.Name, diff)
			}
			return nil
		})
	}
}

// TestPaused verifies that the operator writes no child while an object is paused. The status lists
// the blocked changes, and the operator makes them after the pause.
func TestPaused(t *testing.T) {
	t.Parallel()
	namespace, object, before := newReadyWeb(t, func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](2) })
	set := func(change func(*v1alpha2.NginxOperatorSpec)) {
		t.Helper()
		update(t, object, func(o *v1alpha2.NginxOperator) { change(&o.Spec) })
	}
	waits := func(names ...string) {
		t.Helper()
		waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
			want := []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused, Message: "spec.paused blocks: " + strings.Join(names, ", ")}}
			if diff := cmp.Diff(want, object.Status.BlockedBy); diff != "" {
				return fmt.Errorf("blockedBy (-want +got):\n%s", diff)
			}
			return nil
		})
		waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
		waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)
	}
	audited := len(audit(t))
	set(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)

	set(func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](1) })
	waits(`Deployment "web"`, `the deletion of PodDisruptionBudget "web"`)
	must(t, suite.admin.Delete(t.Context(), before.service))
	waits(`Service "web"`, `Deployment "web"`, `the deletion of PodDisruptionBudget "web"`)
	update(t, before.policy, func(o *networkingv1.NetworkPolicy) { o.Labels = nil })
	waits(`Service "web"`, `NetworkPolicy "web"`, `Deployment "web"`, `the deletion of PodDisruptionBudget "web"`)
	for resource, n := range writesOf(t, audited, namespace) {
		if resource != "nginxoperators/status" && resource != "events/" {
			t.Errorf("%d writes of %s while paused", n, resource)
		}
	}

	set(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = false })
	waitForWeb(t, namespace, func(got children) error {
		if got.service == nil || got.budget != nil || *got.deployment.Spec.Replicas != 1 || got.policy.Labels[wellknown.LabelInstance] != "web" {
			return fmt.Errorf("not all is done: %+v", got)
		}
		return nil
	})
	makeReady(t, namespace, "web")
	waitForNoBlocker(t, namespace)

	set(func(s *v1alpha2.NginxOperatorSpec) { s.Paused = true })
	must(t, suite.admin.Delete(t.Context(), object))
	if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a paused object is not deleted: %v", err)
	}
}

// TestPausedFromTheStart verifies that an object that is created paused gets no children before it
// is resumed.
func TestPausedFromTheStart(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := createWeb(t, namespace, func(s *v1alpha2.NginxOperatorSpec) { s.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonPaused)
	if got := must1(childrenOf(t.Context(), namespace, "web"))(t); got.deployment != nil || got.service != nil || len(got.configMaps) != 0 {
		t.Errorf("children were created: %+v", got)
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = false })
	waitForChildren(t, namespace, "web")
}
