package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha1"
)

// decode reads the objects of a manifest.
func decode(t *testing.T, manifest string) []unstructured.Unstructured {
	t.Helper()
	var out []unstructured.Unstructured
	for _, document := range strings.Split(manifest, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		raw, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		// Numbers are int64, as in an answer of the API server.
		object := unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, object)
	}
	return out
}

// The manifest is what the first API knows, and no two instances look alike.
func TestFleetManifest(t *testing.T) {
	f := newFleet()
	documents := strings.Split(f.manifest(), "---\n")[1:]
	ports := map[int32]bool{}
	withPods := 0
	for _, document := range documents {
		object := &v1alpha1.NginxOperator{}
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if object.APIVersion != v1alpha1.GroupVersion.String() || object.Namespace != fleetNamespace {
			t.Errorf("%s %s/%s", object.APIVersion, object.Namespace, object.Name)
		}
		ports[*object.Spec.Port] = true
		if *object.Spec.Replicas > 0 {
			withPods++
			if object.Name != fleetInstance || *object.Spec.Port != fleetPort || *object.Spec.Replicas != 2 {
				t.Errorf("%s has port %d and %d replicas", object.Name, *object.Spec.Port, *object.Spec.Replicas)
			}
		}
	}
	if len(documents) != bystanders+1 || len(ports) != len(documents) || withPods != 1 {
		t.Errorf("%d instances, %d ports, %d instances with Pods", len(documents), len(ports), withPods)
	}
	if err := f.check(firstAPI, decode(t, f.manifest())); err != nil {
		t.Errorf("what is declared is wrong: %v", err)
	}
}

func TestFleetCheck(t *testing.T) {
	f := fleet{{"web", 8080, 2}, {"object-0", 10000, 0}}
	const (
		older = `
metadata: {name: web}
spec: {port: 8080}
apiVersion: v1
kind: NginxOperator
---
metadata: {name: object-0}
spec: {port: 10000}
apiVersion: v1
kind: NginxOperator
`
		newer = `
metadata: {name: web}
spec: {ports: [{name: http, port: 8080}, {name: second, port: 10000}]}
apiVersion: v1
kind: NginxOperator
---
metadata: {name: object-0}
spec: {ports: [{name: http, port: 10000}]}
apiVersion: v1
kind: NginxOperator
`
	)
	for name, test := range map[string]struct{ version, list, want string }{
		"v1alpha1":                {firstAPI, older, ""},
		"v1alpha2":                {finalAPI, newer, ""},
		"not converted up":        {finalAPI, older, "web has port 0 instead of 8080"},
		"not converted down":      {firstAPI, newer, "web has port 0 instead of 8080"},
		"another instance's port": {firstAPI, strings.ReplaceAll(older, "10000", "8080"), "object-0 has port 8080 instead of 10000"},
		"one is missing":          {firstAPI, strings.Split(older, "---\n")[0], "object-0 is not in the list"},
		"no ports after conversion": {
			finalAPI, strings.ReplaceAll(newer, "[{name: http, port: 10000}]", "[]"), "object-0 has port 0 instead of 10000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := f.check(test.version, decode(t, test.list))
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
