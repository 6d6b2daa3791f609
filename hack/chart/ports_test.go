package main

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/options"
)

// podPorts are the numbers of the ports of the operator's Pods.
type podPorts struct{ Webhooks, Metrics, Probes string }

// TestPorts verifies that Services, probes, and the NetworkPolicy of the chart connect to the ports
// on which the operator listens.
func TestPorts(t *testing.T) {
	fromConfig := podPorts{"9443", "8443", "8081"}
	for name, test := range map[string]struct {
		values string
		want   podPorts
	}{
		"default":      {"", fromConfig},
		"reused":       {"ports: null", fromConfig}, // by helm upgrade --reuse-values
		"one":          {"ports: {webhooks: 10250}", podPorts{"10250", "8443", "8081"}},
		"host network": {"hostNetwork: true\nports: {webhooks: 65535, metrics: 18443, probes: 18081}", podPorts{"65535", "18443", "18081"}},
		"addresses":    {"extraArgs: ['--webhook-bind-address=0.0.0.0:9443', '--health-probe-bind-address=[::]:8081']", fromConfig},
		"both": {
			"extraArgs: ['--webhook-bind-address=:10250']\nports: {webhooks: 10250}", podPorts{"10250", "8443", "8081"},
		},
	} {
		for _, program := range versions {
			t.Run(program+" "+name, func(t *testing.T) {
				objects := rendered(t, program, test.values+"\nnetworkPolicy: {enabled: true}\n")
				container := find[*appsv1.Deployment](t, objects, "nginx-operator-controller-manager").Spec.Template.Spec.Containers[0]
				if diff := cmp.Diff(test.want, listens(t, &container)); diff != "" {
					t.Errorf("the operator listens on (-want +got):\n%s", diff)
				}
				clientsConnect(t, objects, &container, test.want)
			})
		}
	}
}

// listens returns the ports on which the operator listens, by its flags.
func listens(t *testing.T, container *corev1.Container) podPorts {
	t.Helper()
	parsed, err := options.Parse(container.Args, func(name string) (string, bool) {
		for _, variable := range container.Env {
			if variable.Name == name && variable.Value != "" {
				return variable.Value, true
			}
		}
		return "", false
	}, io.Discard)
	must(t, err)
	number := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		must(t, err)
		return port
	}
	return podPorts{number(parsed.WebhookBindAddress), number(parsed.MetricsBindAddress), number(parsed.HealthProbeBindAddress)}
}

// clientsConnect requires that each client of the operator's Pods connects to these ports.
func clientsConnect(t *testing.T, objects []client.Object, container *corev1.Container, want podPorts) {
	t.Helper()
	numbers := map[string]intstr.IntOrString{}
	for _, port := range container.Ports {
		numbers[port.Name] = intstr.FromInt32(port.ContainerPort)
	}
	number := func(port intstr.IntOrString) string {
		if port.Type == intstr.String {
			port = numbers[port.StrVal]
		}
		return port.String()
	}
	service := func(name string) string {
		return number(find[*corev1.Service](t, objects, name).Spec.Ports[0].TargetPort)
	}
	policy := find[*networkingv1.NetworkPolicy](t, objects, "nginx-operator-controller-manager").Spec.Ingress
	for what, got := range map[string]podPorts{
		"Services and the readiness probe": {
			service("nginx-operator-webhook-service"), service("nginx-operator-controller-manager-metrics-service"),
			number(container.ReadinessProbe.HTTPGet.Port),
		},
		// Nodes reach the probes without a rule.
		"the NetworkPolicy and the liveness probe": {
			number(*policy[0].Ports[0].Port), number(*policy[1].Ports[0].Port), number(container.LivenessProbe.HTTPGet.Port),
		},
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s connect to (-want +got):\n%s", what, diff)
		}
	}
}

// TestRefusedPorts verifies that the chart refuses ports that nothing could connect to, and names
// the value to set.
func TestRefusedPorts(t *testing.T) {
	for values, want := range map[string]string{
		"extraArgs: ['--webhook-bind-address=:10250']":      "set ports.webhooks instead",
		"extraArgs: ['--metrics-bind-address=:18443']":      "set ports.metrics instead",
		"extraArgs: ['--health-probe-bind-address=:18081']": "set ports.probes instead",
		"hostNetwork: true\nports: {webhooks: 10250}":       "the kubelet uses 10250",
		"ports: {webhooks: 8443}":                           "ports.webhooks: another entry of ports also has the number 8443",
	} {
		for _, program := range versions {
			if _, err := templated(t, program, values); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v", values, program, err)
			}
		}
	}
	// Without metrics, nothing needs to connect to them.
	if _, err := templated(t, "helm", "extraArgs: ['--metrics-bind-address=0']"); err != nil {
		t.Error(err)
	}
}
