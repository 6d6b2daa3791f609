package migrate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// silent has the reason why fields with these ends, or ends and values, have no effect.
var silent = map[string]string{
	"Deployment.spec.selector.matchExpressions.key":                    "the operator sets the selector",
	"Deployment.spec.selector.matchExpressions.operator":               "the operator sets the selector",
	"Deployment.spec.selector.matchExpressions.values":                 "the operator sets the selector",
	"Deployment.spec.template.metadata.creationTimestamp":              "it is not part of the declaration",
	"Deployment.spec.template.spec.enableServiceLinks=true":            "nginx does not use the variables",
	"Deployment.spec.template.spec.enableServiceLinks=false":           "nginx does not use the variables",
	"Deployment.spec.template.spec.automountServiceAccountToken=false": "the token is not mounted",
	".shareProcessNamespace=false":                                     "it is the default",
	".setHostnameAsFQDN=false":                                         "it is the default",
	".windowsOptions.hostProcess=false":                                "it is the default",
	".privileged=false":                                                "it is the default",
	".allowPrivilegeEscalation=false":                                  "the operator's Pods have it",
	".runAsNonRoot=true":                                               "the operator's Pods have it",
	".runAsNonRoot=false":                                              "it is the default, and the images are checked",
	".readOnlyRootFilesystem=true":                                     "the operator's Pods have it",
	".readOnlyRootFilesystem=false":                                    "it is the default, and the page has the difference",
	".capabilities.drop":                                               "the operator drops all",
	".terminationMessagePolicy":                                        "the operator's policy shows more",
	"Deployment.spec.template.spec.containers.name":                    "nginx is found by its image",
	"Service.spec.clusterIPs":                                          "clusterIP is listed",
	"Service.spec.healthCheckNodePort":                                 "Kubernetes sets it",
	"Service.spec.allocateLoadBalancerNodePorts=true":                  "it is the default",
	"Nginx.spec.config.name":                                           "tsuru ignores it for kind Inline",
	"Nginx.spec.tls.hosts":                                             "tsuru uses it for the Ingress only",
	"Nginx.spec.podTemplate.ports.name":                                "the port has the default number",
	"Nginx.spec.service.usePodSelector=true":                           "it is the default",
}

// leaf is a field, and a value that is not its default.
type leaf struct {
	path  []string
	value any
}

// leaves returns the fields of a type without inner fields. A list has one element.
func leaves(of reflect.Type, at []string) []leaf {
	at = slices.Clone(at)
	switch of {
	case reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString]():
		return []leaf{{at, "7"}}
	case reflect.TypeFor[metav1.Time]():
		return []leaf{{at, "2026-01-01T00:00:00Z"}}
	case reflect.TypeFor[metav1.FieldsV1]():
		return nil
	}
	switch of.Kind() {
	case reflect.Pointer:
		out := leaves(of.Elem(), at)
		if of.Elem().Kind() == reflect.Bool {
			out = append(out, leaf{at, false})
		}
		return out
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			return nil
		}
		return leaves(of.Elem(), append(at, "[]"))
	case reflect.Map:
		return []leaf{{append(at, "example.com/k"), "v"}}
	case reflect.Struct:
		var out []leaf
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name == "" {
				out = append(out, leaves(of.Field(i).Type, at)...)
				continue
			}
			out = append(out, leaves(of.Field(i).Type, append(at, name))...)
		}
		return out
	case reflect.Bool:
		return []leaf{{at, true}}
	case reflect.Int32, reflect.Int64:
		return []leaf{{at, int64(7)}}
	case reflect.String:
		return []leaf{{at, "x"}}
	}
	panic("no value for " + of.String())
}

// set returns a copy of a value with another value at a path. [] is the first element of a list.
func set(in any, at []string, value any) any {
	if len(at) == 0 {
		return value
	}
	if at[0] == "[]" {
		list, _ := in.([]any)
		list = slices.Clone(list)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = set(list[0], at[1:], value)
		return list
	}
	fields, _ := in.(map[string]any)
	fields = maps.Clone(fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[at[0]] = set(fields[at[0]], at[1:], value)
	return fields
}

// without is a Deployment with its Service that has no optional field.
const without = `apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: nginx
        image: docker.io/nginxinc/nginx-unprivileged:1.30.7
        ports: [{name: web, containerPort: 8080}]
        volumeMounts: [{name: a, mountPath: /a}]
        env: [{name: A}]
      - {name: sidecar, image: docker.io/nginxinc/nginx-unprivileged:1.30.7}
      initContainers:
      - {name: init, image: docker.io/nginxinc/nginx-unprivileged:1.30.7}
      volumes: [{name: a, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: a}
spec: {selector: {app: a}, ports: [{port: 8080, targetPort: web}]}
`

// TestNoFieldIsSilent verifies that each field of a workload is converted, or a comment lists it.
func TestNoFieldIsSilent(t *testing.T) {
	matched := map[string]bool{}
	for _, test := range []struct {
		manifests, kind string
		spec            reflect.Type
		fields          int
	}{
		{without, "Deployment", reflect.TypeFor[appsv1.DeploymentSpec](), 900},
		{without, "Service", reflect.TypeFor[corev1.ServiceSpec](), 25},
		{withoutTsuru, "Nginx", reflect.TypeFor[tsuruSpec](), 700},
	} {
		base := printedFrom(t, parse(t, test.manifests))
		tried := 0
		for _, one := range append(leaves(test.spec, []string{"spec"}), leaf{[]string{"metadata", "labels", "a"}, "b"},
			leaf{[]string{"metadata", "annotations", "a"}, "b"}) {
			manifests := parse(t, test.manifests)
			for _, manifest := range manifests {
				if manifest.GetKind() == test.kind {
					manifest.Object = set(manifest.Object, one.path, one.value).(map[string]any)
				}
			}
			tried++
			if printedFrom(t, manifests) != base {
				continue
			}
			name := strings.ReplaceAll(test.kind+"."+strings.Join(one.path, "."), ".[]", "")
			if !isSilent(name, one.value, matched) {
				t.Errorf("%s: %v has no effect", name, one.value)
			}
		}
		if tried < test.fields {
			t.Errorf("%s: %d fields were tried, want %d or more", test.kind, tried, test.fields)
		}
	}
	for end := range silent {
		if !matched[end] {
			t.Errorf("no field without effect ends with %s", end)
		}
	}
}

func isSilent(name string, value any, matched map[string]bool) (found bool) {
	for end := range silent {
		if strings.HasSuffix(name, end) || strings.HasSuffix(fmt.Sprintf("%s=%v", name, value), end) {
			matched[end], found = true, true
		}
	}
	return found
}

// printedFrom returns the results of manifests as text, or the error.
func printedFrom(t *testing.T, manifests []*unstructured.Unstructured) string {
	t.Helper()
	results, err := From(manifests, "")
	if err != nil {
		return err.Error()
	}
	out := ""
	for i := range results {
		text, err := results[i].YAML()
		if err != nil {
			t.Fatal(err)
		}
		out += string(text)
	}
	return out
}

const withoutTsuru = `apiVersion: nginx.tsuru.io/v1alpha1
kind: Nginx
metadata: {name: a}
spec:
  config: {kind: Inline, value: "http { server { listen 8080; listen 8443; } }"}
  cache: {path: /var/cache/a, size: 1Gi}
  extraFiles: {name: files}
  tls: [{secretName: tls, hosts: [a.example.com]}]
  service: {type: LoadBalancer}
  podTemplate:
    ports: [{name: http, containerPort: 8080}]
    volumes: [{name: a, emptyDir: {}}]
    volumeMounts: [{name: a, mountPath: /a}]
    containers: [{name: sidecar, image: docker.io/nginxinc/nginx-unprivileged:1.30.7}]
    initContainers: [{name: init, image: docker.io/nginxinc/nginx-unprivileged:1.30.7}]
`
