package command

import (
	"cmp"
	"encoding/json"
	"os"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/docs"
	"github.com/example/nginx-operator/internal/change"
)

// TestPodSpec verifies that a rollback restores the fields that reach the Pods, and keeps others.
func TestPodSpec(t *testing.T) {
	var stored podSpec
	text := `{"image":"nginx:1","ports":[{"port":8080},{"port":8443},{"port":9000}],"tls":[{"secretName":"a","port":443}],
		"monitoring":{"enabled":true},"patches":[{"target":{"kind":"Deployment"},"patch":"old"}]}`
	for _, into := range []any{&stored.typed, &stored.fields} {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	https := "https"
	stored.service = []corev1.ServicePort{{Name: "web", Port: 8080, NodePort: 30080}, {Name: "secure", Port: 8443, AppProtocol: &https}}
	var live map[string]any
	var want, got v1alpha2.NginxOperatorSpec
	for text, into := range map[string]any{`
image: nginx:2
replicas: 3
env: [{name: A, value: b}]
service: {type: NodePort}
rollout: {maxSurge: 1}
ports: [{name: http, port: 9090}]
tls: [{secretName: a, nodePort: 30443}]
monitoring: {podMonitor: {}, alerts: {}}
patches: [{target: {kind: Service}, patch: now}, {target: {kind: Deployment}, patch: new}]
`: &live, `
image: nginx:1
replicas: 3
service: {type: NodePort}
rollout: {maxSurge: 1}
ports: [{name: web, port: 8080, nodePort: 30080}, {name: secure, port: 8443, appProtocol: https}, {name: p-9000, port: 9000}]
tls: [{secretName: a, port: 443, nodePort: 30443}]
monitoring: {enabled: true, podMonitor: {}, alerts: {}}
patches: [{target: {kind: Deployment}, patch: old}, {target: {kind: Service}, patch: now}]
`: &want} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(stored.spec(&unstructured.Unstructured{Object: map[string]any{"spec": live}}))
	if err != nil || yaml.UnmarshalStrict(raw, &got) != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPodSpecReversesUserPart verifies that a rollback keeps all that change.UserPart omits.
func TestPodSpecReversesUserPart(t *testing.T) {
	page, err := docs.Fields(os.DirFS("../../../docs/guide"))
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, example := range docs.Examples(page) {
		documents = append(documents, example.Documents...)
	}
	tried := 0
	for _, document := range documents {
		object := &v1alpha2.NginxOperator{}
		if err := yaml.Unmarshal([]byte(document), object); err != nil || object.Kind != "NginxOperator" {
			continue
		}
		tried++
		live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		part := change.UserPart(&object.Spec)
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&part)
		if err != nil {
			t.Fatal(err)
		}
		stored := podSpec{fields: fields, typed: part}
		for _, port := range object.Spec.Ports {
			stored.service = append(stored.service, corev1.ServicePort{
				Name: port.Name, Port: port.Port, NodePort: ptr.Deref(port.NodePort, 0), AppProtocol: &port.AppProtocol,
			})
		}
		var got v1alpha2.NginxOperatorSpec
		merged := stored.spec(&unstructured.Unstructured{Object: live})
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, &got); err != nil {
			t.Fatal(err)
		}
		byKind := func(a, b v1alpha2.Patch) int { return cmp.Compare(a.Target.Kind, b.Target.Kind) }
		slices.SortStableFunc(object.Spec.Patches, byKind)
		slices.SortStableFunc(got.Patches, byKind)
		if diff := gocmp.Diff(object.Spec, got); diff != "" {
			t.Errorf("%s (-declared +rolled back):\n%s", object.Name, diff)
		}
	}
	if tried < 20 {
		t.Errorf("only %d examples", tried)
	}
}
