package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// hostileRecords are values that a user with write access to ConfigMaps and Services could put in
// place of the operator's record.
var hostileRecords = []string{
	`{"metadata":{"finalizers":[null]}}`, "null", "[]", "1", `{"spec":1}`, `{"spec":{"ports":[null]}}`,
	`{"spec":{"ports":"x","clusterIP":"192.0.2.1"}}`, `{"spec":{"$patch":"delete"}}`, "AAAAAAAAAAAAAAAAAAAAAA",
	`{"metadata":{"finalizers":["` + strings.Repeat(`a/b","`, 40_000) + `a/b"]}}`,
}

// TestForgedChildrenAreNotInterpreted verifies that the operator ignores records on ConfigMaps that
// it does not own, whatever owner such a ConfigMap references. The operator sends no request for
// these ConfigMaps, and they stay unchanged.
func TestForgedChildrenAreNotInterpreted(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := createWeb(t, namespace, nil)
	var stored []*corev1.ConfigMap
	for i, record := range hostileRecords {
		forged := newConfigMap(namespace, fmt.Sprintf("forged-%d", i), nil)
		forged.Labels = wellknown.ChildLabels("web", "nginx:1")
		forged.Annotations = map[string]string{wellknown.AnnotationLastDeclared: record}
		forged.SetSelfLink("forged")
		if i%2 == 1 {
			forged.OwnerReferences = []metav1.OwnerReference{{
				APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: "web", UID: "forged", Controller: ptr.To(true),
			}}
		}
		create(t, forged)
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(forged), forged))
		if forged.GetSelfLink() != "" {
			t.Fatalf("the API server keeps selfLink %q, where the cache has fingerprints", forged.GetSelfLink())
		}
		stored = append(stored, forged)
	}
	waitForChildren(t, namespace, "web")

	// If the operator applies a change made after these ConfigMaps, its reconcile has seen them.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = onPort(9090) })
	waitForWeb(t, namespace, func(now children) error {
		if now.service.Spec.Ports[0].Port != 9090 {
			return errors.New("the Service still has another port")
		}
		return nil
	})
	for _, forged := range stored {
		before := forged.ResourceVersion
		must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(forged), forged))
		if forged.ResourceVersion != before {
			t.Errorf("ConfigMap %s was written", forged.Name)
		}
	}
	for _, request := range audit(t) {
		ref := request.ObjectRef
		if ref.Namespace == namespace && ref.Resource == "configmaps" && strings.HasPrefix(ref.Name, "forged-") {
			t.Errorf("the operator sent %s %s", request.Verb, request.RequestURI)
		}
	}
	stillRuns(t)
}

// TestHostileRecordsOfChildren verifies that the operator corrects drift and restores the record,
// whatever value replaced it. Annotations of other clients stay.
func TestHostileRecordsOfChildren(t *testing.T) {
	t.Parallel()
	_, _, got := newWeb(t, nil)
	port := got.service.Spec.Ports[0].Port
	for _, child := range []client.Object{got.service, got.policy, got.deployment} {
		record := child.GetAnnotations()[wellknown.AnnotationLastDeclared]
		for _, hostile := range hostileRecords {
			update(t, child, func(o client.Object) {
				o.GetAnnotations()[wellknown.AnnotationLastDeclared], o.GetAnnotations()["example.com/theirs"] = hostile, "1"
				o.GetLabels()[wellknown.LabelPartOf] = "theirs"
				if service, ok := o.(*corev1.Service); ok {
					service.Spec.Ports[0].Port = 9999
				}
			})
			waitFor(t, func() error {
				must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(child), child))
				part, now := child.GetLabels()[wellknown.LabelPartOf], child.GetAnnotations()[wellknown.AnnotationLastDeclared]
				if now != record || part != wellknown.OperatorName {
					return fmt.Errorf("after %.60s: %T is part of %s, record %.60s", hostile, child, part, now)
				}
				if ports := got.service.Spec.Ports; len(ports) != 1 || ports[0].Port != port {
					return fmt.Errorf("after %.60s: ports %+v", hostile, ports)
				}
				return nil
			})
			if child.GetAnnotations()["example.com/theirs"] != "1" {
				t.Errorf("after %.60s: an annotation of others is gone from %T", hostile, child)
			}
		}
	}
	stillRuns(t)
}

// stillRuns fails the test if the operator has exited.
func stillRuns(t *testing.T) {
	t.Helper()
	select {
	case <-suite.operator.Done():
		t.Fatal(errors.New("the operator has ended"), suite.operator.Summary())
	default:
	}
}

// readsOfChildren counts the operator's reads of Services, NetworkPolicies, and Deployments in a
// namespace after the first audited entries of the audit log.
func readsOfChildren(t *testing.T, audited int, namespace string) int {
	t.Helper()
	n := 0
	for _, entry := range audit(t)[audited:] {
		switch {
		case entry.ObjectRef.Namespace != namespace || entry.Verb != "get":
		case entry.ObjectRef.Resource == "services", entry.ObjectRef.Resource == "networkpolicies", entry.ObjectRef.Resource == "deployments":
			n++
		}
	}
	return n
}
