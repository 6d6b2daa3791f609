package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// full sets every value to another one than the default.
const full = `
replicas: 3
image:
  repository: registry.example.com/nginx-operator
  tag: v1
  digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  pullPolicy: Always
imagePullSecrets: [{name: registry}]
operands:
  nginx: {image: registry.example.com/nginx:1}
  exporter: {image: registry.example.com/exporter:2}
  requestMetrics: {image: registry.example.com/request-metrics:3}
watchNamespaces: [team-a, "1234", nginx-operator-system]
extraArgs: [--log-level=debug]
hostNetwork: true
ports: {webhooks: 10251, metrics: 18443, probes: 18081}
resources: {limits: {memory: 1Gi}}
nodeSelector: {example.com/pool: system}
tolerations: [{key: example.com/system, operator: Exists}]
affinity: {podAntiAffinity: null}
topologySpreadConstraints:
- {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}
priorityClassName: system-cluster-critical
podAnnotations: {example.com/scrape: "false"}
commonLabels: {team: platform, cost: "1"}
crds: {enabled: true, keep: false}
monitoring:
  enabled: true
  labels: {release: prometheus, team: monitoring}
  rules: {enabled: true}
  dashboards: {enabled: true, labels: {dashboards: "yes"}}
networkPolicy:
  enabled: true
  metricsNamespaces: {matchLabels: {metrics: disabled}}
`

// TestValues verifies that every value reaches the objects.
func TestValues(t *testing.T) {
	for _, program := range versions {
		t.Run(program, func(t *testing.T) {
			objects := rendered(t, program, full)
			testValuesOfPods(t, find[*appsv1.Deployment](t, objects, "nginx-operator-controller-manager"))
			testValuesOfObjects(t, objects)
		})
	}
}

func testValuesOfPods(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	want := "registry.example.com/nginx-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	if container.Image != want || container.ImagePullPolicy != corev1.PullAlways || pod.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the image is %s (%s, %v)", container.Image, container.ImagePullPolicy, pod.ImagePullSecrets)
	}
	env := map[string]string{}
	for _, variable := range container.Env {
		env[variable.Name] = variable.Value
	}
	if env["RELATED_IMAGE_NGINX"] != "registry.example.com/nginx:1" ||
		env["RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER"] != "registry.example.com/exporter:2" ||
		env["RELATED_IMAGE_NGINX_REQUEST_METRICS"] != "registry.example.com/request-metrics:3" {
		t.Errorf("the operands are %v", env)
	}
	args := []string{"--watch-namespaces=team-a,1234,nginx-operator-system", "--log-level=debug"}
	if got := container.Args[len(container.Args)-2:]; !slices.Equal(got, args) || !slices.Contains(container.Args, "--leader-elect") {
		t.Errorf("the flags are %q", container.Args)
	}
	strategy := deployment.Spec.Strategy.RollingUpdate
	if !pod.HostNetwork || strategy.MaxSurge.IntValue() != 0 || strategy.MaxUnavailable.IntValue() != 1 {
		t.Errorf("on the network of the nodes: %t, with the strategy %v", pod.HostNetwork, strategy)
	}
	if memory := container.Resources.Limits.Memory().String(); *deployment.Spec.Replicas != 3 || memory != "1Gi" {
		t.Errorf("%d replicas with %s", *deployment.Spec.Replicas, memory)
	}
	testPlacementOfPods(t, pod)
	template := deployment.Spec.Template
	if template.Annotations["example.com/scrape"] != "false" || template.Labels["team"] != "platform" {
		t.Errorf("the Pods have %v and %v", template.Annotations, template.Labels)
	}
	if _, selected := deployment.Spec.Selector.MatchLabels["team"]; selected {
		t.Error("a common label is in the selector, which cannot change")
	}
}

func testPlacementOfPods(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	if pod.NodeSelector["example.com/pool"] != "system" || pod.Tolerations[0].Key != "example.com/system" ||
		pod.Affinity.PodAntiAffinity != nil || pod.Affinity.NodeAffinity == nil || pod.PriorityClassName != "system-cluster-critical" ||
		pod.TopologySpreadConstraints[0].MaxSkew != 1 {
		t.Errorf("the Pods are placed by %+v", pod)
	}
}

func testValuesOfObjects(t *testing.T, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		if labels := object.GetLabels(); labels["cost"] != "1" || labels["app.kubernetes.io/name"] != "nginx-operator" {
			t.Errorf("%T %s has the labels %v", object, object.GetName(), labels)
		}
	}
	crd := find[*apiextensionsv1.CustomResourceDefinition](t, objects, "nginxoperators.operator.example.com")
	if _, kept := crd.Annotations["helm.sh/resource-policy"]; kept {
		t.Error("the CRD is kept")
	}
	monitor := find[*monitoringv1.ServiceMonitor](t, objects, "nginx-operator")
	if monitor.Labels["release"] != "prometheus" || monitor.Labels["team"] != "monitoring" ||
		find[*monitoringv1.PrometheusRule](t, objects, "nginx-operator").Labels["release"] != "prometheus" {
		t.Errorf("Prometheus does not find %v", monitor.Labels)
	}
	dashboards := find[*corev1.ConfigMap](t, objects, "nginx-operator-dashboard")
	if _, found := dashboards.Labels["grafana_dashboard"]; !found || dashboards.Labels["dashboards"] != "yes" {
		t.Errorf("Grafana does not find %v", dashboards.Labels)
	}
	policy := find[*networkingv1.NetworkPolicy](t, objects, "nginx-operator-controller-manager")
	if policy.Spec.Ingress[1].From[0].NamespaceSelector.MatchLabels["metrics"] != "disabled" {
		t.Errorf("the policy is %+v", policy.Spec)
	}
}

// TestSchema verifies that Helm refuses wrong values, and names them.
func TestSchema(t *testing.T) {
	for values, name := range map[string]string{
		"replica: 1":                          "replica",
		"image: {name: x}":                    "image",
		"replicas: many":                      "replicas",
		"image: {digest: sha256:1}":           "digest",
		"image: {pullPolicy: Sometimes}":      "pullPolicy",
		"operands: {nginx: {image: ''}}":      "image",
		"watchNamespaces: [A]":                "watchNamespaces",
		"watchNamespaces: [a, a]":             "watchNamespaces",
		"extraArgs: [log-level=debug]":        "extraArgs",
		"ports: {webhooks: 443}":              "webhooks",
		"ports: {webhook: 10250}":             "ports",
		"hostNetwork: 'yes'":                  "hostNetwork",
		"imagePullSecrets: [registry]":        "imagePullSecrets",
		"commonLabels: {helm.sh/chart: x}":    "helm.sh/chart",
		"commonLabels: {team: a b}":           "team",
		"monitoring: {dashboard: true}":       "monitoring",
		"networkPolicy: {enabled: 'true'}":    "enabled",
		"crds: {enabled: true, install: yes}": "crds",
	} {
		if _, err := templated(t, "helm", values); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", values, err)
		}
	}
	if _, err := templated(t, "helm4", "replica: 1"); err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("Helm 4: %v", err)
	}
	// Helm adds these values to a chart in another chart.
	if _, err := templated(t, "helm", "global: {x: 1}"); err != nil {
		t.Errorf("not usable in another chart: %v", err)
	}
}

// TestEveryValue verifies that values.yaml and its schema have the same values, and that TestValues
// leaves out none.
func TestEveryValue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, chartDir, "values.yaml"))
	must(t, err)
	described, err := readValues(string(text))
	must(t, err)
	text, err = os.ReadFile(filepath.Join(repository, chartDir, "values.schema.json"))
	must(t, err)
	inSchema, set := propertiesOf(t, "", text), kyaml.MustParse(full)
	var want []string
	for _, value := range described {
		want = append(want, value.path)
		if found, err := set.Pipe(kyaml.Lookup(strings.Split(value.path, ".")...)); err != nil || found == nil {
			t.Errorf("full does not set %s: %v", value.path, err)
		}
	}
	slices.Sort(want)
	slices.Sort(inSchema)
	if diff := cmp.Diff(want, inSchema); diff != "" {
		t.Errorf("values (-values.yaml +schema):\n%s", diff)
	}
}

// propertiesOf returns the paths of the properties of a schema that have no properties themselves.
func propertiesOf(t *testing.T, prefix string, raw json.RawMessage) (out []string) {
	t.Helper()
	var schema struct{ Properties map[string]json.RawMessage }
	must(t, json.Unmarshal(raw, &schema))
	for name, property := range schema.Properties {
		if nested := propertiesOf(t, prefix+name+".", property); len(nested) > 0 {
			out = append(out, nested...)
		} else if prefix+name != "global" {
			out = append(out, prefix+name)
		}
	}
	return out
}
