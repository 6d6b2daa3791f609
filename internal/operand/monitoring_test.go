package operand

import (
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

func kindsOf(object *v1alpha2.NginxOperator) string {
	in := Inputs{Image: fixture.Image, Exporter: defaults.ExporterImage(&object.Spec, fixture.ExporterImage)}
	var kinds []string
	for _, child := range Desired(object, in) {
		kinds = append(kinds, KindOf(child))
	}
	return strings.Join(kinds, " ")
}

// TestExporter verifies that the exporter runs if monitoring is enabled and the user runs none. It
// has the security context of nginx, and is the last sidecar.
func TestExporter(t *testing.T) {
	const all, none = "ConfigMap Service NetworkPolicy Deployment PodMonitor PrometheusRule", "ConfigMap Service NetworkPolicy Deployment"
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		kinds  string
		image  string
		args   []string
	}{
		"not declared": {change: func(*v1alpha2.NginxOperatorSpec) {}, kinds: none},
		"switched off": {change: fixture.Monitored(func(m *v1alpha2.Monitoring) { m.Enabled = ptr.To(false) }), kinds: none},
		"none": {
			change: func(s *v1alpha2.NginxOperatorSpec) {
				s.Monitoring = &v1alpha2.Monitoring{Exporter: v1alpha2.ExporterNone}
			},
			kinds: none,
		},
		"on": {
			change: fixture.Monitored(), kinds: all, image: fixture.ExporterImage,
			args: []string{"--nginx.scrape-uri=http://127.0.0.1:18081/stub_status", "--web.listen-address=:9113"},
		},
		"where nginx listens itself": {
			change: func(s *v1alpha2.NginxOperatorSpec) {
				fixture.Monitored(func(m *v1alpha2.Monitoring) { m.Enabled, m.Image = ptr.To(true), "example.com/exporter:2" })(s)
				for _, port := range []int32{9113, 18080, 18082} {
					s.Ports = append(s.Ports, v1alpha2.Port{Port: port})
				}
			},
			kinds: all, image: "example.com/exporter:2",
			args: []string{"--nginx.scrape-uri=http://127.0.0.1:18083/stub_status", "--web.listen-address=:9114"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
				s.Sidecars = []v1alpha2.Container{{Name: "refresh"}}
			}, test.change)
			if got := kindsOf(object); got != test.kinds {
				t.Errorf("children %s", got)
			}
			in := Inputs{Image: fixture.Image, Exporter: defaults.ExporterImage(&object.Spec, fixture.ExporterImage)}
			pod := &DesiredDeployment(object, in).Spec.Template.Spec
			if test.image == "" {
				if len(pod.InitContainers) != 1 {
					t.Errorf("containers beside nginx: %+v", pod.InitContainers)
				}
				return
			}
			if len(pod.InitContainers) != 2 {
				t.Fatalf("containers beside nginx: %+v", pod.InitContainers)
			}
			exporter := pod.InitContainers[1]
			if diff := gocmp.Diff(test.args, exporter.Args); diff != "" {
				t.Errorf("arguments (-want +got):\n%s", diff)
			}
			if exporter.Name != wellknown.ExporterContainer || exporter.Image != test.image ||
				ptr.Deref(exporter.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways || exporter.Resources.Requests.Cpu().IsZero() {
				t.Errorf("exporter %+v", exporter)
			}
			if diff := gocmp.Diff(pod.Containers[0].SecurityContext, exporter.SecurityContext); diff != "" {
				t.Errorf("rights (-nginx +exporter):\n%s", diff)
			}
			number, monitor := defaults.MetricsPort(&object.Spec), desiredPodMonitor(object, in).(*monitoringv1.PodMonitor)
			if exporter.Ports[0].ContainerPort != number || *monitor.Spec.PodMetricsEndpoints[0].PortNumber != number {
				t.Errorf("the exporter listens on %d, declared %v", number, exporter.Ports)
			}
			rules := desiredNetworkPolicy(object, in).Spec.Ingress
			forAll := rules[len(rules)-1]
			isMetrics := func(port networkingv1.NetworkPolicyPort) bool { return port.Port.IntVal == number }
			if len(forAll.From) > 0 || !slices.ContainsFunc(forAll.Ports, isMetrics) {
				t.Errorf("the NetworkPolicy lets all reach %+v", forAll.Ports)
			}
		})
	}
}

// TestMetricsBehindANetworkPolicy verifies that a NetworkPolicy that restricts the served ports
// admits every client to the metrics.
func TestMetricsBehindANetworkPolicy(t *testing.T) {
	object := fixture.NewObject(fixture.Monitored(), func(s *v1alpha2.NginxOperatorSpec) {
		s.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}}
	})
	rules := desiredNetworkPolicy(object, Inputs{}).Spec.Ingress
	if diff := gocmp.Diff(portsOf(9113, 18080), rules[len(rules)-1].Ports); len(rules) != 2 || diff != "" {
		t.Errorf("%d rules, the last one (-want +got):\n%s", len(rules), diff)
	}
}

// TestPrometheusRule verifies that each alert references the instance. The alert about a limit
// exists only if the limit is known.
func TestPrometheusRule(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		limit  string
	}{
		"as many workers as the node has processors": {func(*v1alpha2.NginxOperatorSpec) {}, ""},
		"a limit of cpu": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")}}
		}, "/ 2048"},
		"workers": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Nginx = &v1alpha2.Nginx{WorkerProcesses: ptr.To[int32](3), WorkerConnections: ptr.To[int32](100)}
		}, "/ 300"},
		"more connections than the usual limit of open files": {func(s *v1alpha2.NginxOperatorSpec) {
			s.Nginx = &v1alpha2.Nginx{WorkerProcesses: ptr.To[int32](2), WorkerConnections: ptr.To[int32](65535)}
		}, "/ 2048 >"},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(test.change, fixture.Monitored(func(m *v1alpha2.Monitoring) {
				m.Alerts.Labels = map[string]string{"release": "prometheus", wellknown.LabelName: "mine"}
			}))
			rule := desiredPrometheusRule(object, Inputs{Image: fixture.Image}).(*monitoringv1.PrometheusRule)
			if rule.Name != "web" || rule.Labels["release"] != "prometheus" || rule.Labels[wellknown.LabelName] == "mine" {
				t.Errorf("metadata %+v", rule.ObjectMeta)
			}
			limited := false
			for _, alert := range rule.Spec.Groups[0].Rules {
				texts := alert.Expr.StrVal
				for _, text := range alert.Annotations {
					texts += text
				}
				if !strings.Contains(alert.Expr.StrVal, `namespace="shop"`) || !strings.Contains(alert.Expr.StrVal, `"web"`) ||
					strings.Contains(texts, "NAME") || strings.Contains(texts, "LIMIT") {
					t.Errorf("%s: %s", alert.Alert, texts)
				}
				limited = limited || test.limit != "" && strings.Contains(alert.Expr.StrVal, test.limit)
			}
			if limited != (test.limit != "") {
				t.Errorf("the limit %q: %+v", test.limit, rule.Spec.Groups[0].Rules)
			}
		})
	}
}

// TestRequestMetrics verifies that the receiver runs next to the exporter, on ports that the spec does
// not use, that the NetworkPolicy and the PodMonitor have its port, and that only its alerts depend on
// it.
func TestRequestMetrics(t *testing.T) {
	declared := fixture.Monitored(func(m *v1alpha2.Monitoring) { m.RequestMetrics = &v1alpha2.RequestMetrics{} })
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		args   []string
		ports  []int32
	}{
		"off":          {change: fixture.Monitored(), ports: []int32{9113}},
		"switched off": {change: func(s *v1alpha2.NginxOperatorSpec) { declared(s); s.Monitoring.Enabled = ptr.To(false) }},
		"on": {
			change: declared, args: []string{"--listen=127.0.0.1:9514", "--metrics-address=:9114"}, ports: []int32{9113, 9114},
		},
		"where nginx listens itself": {
			change: func(s *v1alpha2.NginxOperatorSpec) {
				declared(s)
				for _, port := range []int32{9113, 9514} {
					s.Ports = append(s.Ports, v1alpha2.Port{Port: port})
				}
			},
			args: []string{"--listen=127.0.0.1:9515", "--metrics-address=:9115"}, ports: []int32{9114, 9115},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(test.change)
			release := Release{Image: fixture.Image, ExporterImage: fixture.ExporterImage, RequestMetricsImage: fixture.RequestMetricsImage}
			in := release.Inputs(object)
			pod := &DesiredDeployment(object, in).Spec.Template.Spec
			if test.args == nil {
				if in.RequestMetrics != "" || len(pod.InitContainers) != len(test.ports) {
					t.Errorf("the receiver %q, containers %+v", in.RequestMetrics, pod.InitContainers)
				}
			} else {
				receiver := pod.InitContainers[len(pod.InitContainers)-1]
				if diff := gocmp.Diff(test.args, receiver.Args); diff != "" || receiver.Image != fixture.RequestMetricsImage {
					t.Errorf("image %s, arguments (-want +got):\n%s", receiver.Image, diff)
				}
				if diff := gocmp.Diff(pod.Containers[0].SecurityContext, receiver.SecurityContext); diff != "" {
					t.Errorf("rights (-nginx +receiver):\n%s", diff)
				}
				if receiver.Resources.Requests.Cpu().IsZero() || receiver.Resources.Limits.Memory().IsZero() || len(receiver.Resources.Limits) != 1 {
					t.Errorf("resources %+v", receiver.Resources)
				}
				if receiver.Ports[0].ContainerPort != test.ports[1] {
					t.Errorf("ports %+v", receiver.Ports)
				}
			}

			rules := desiredNetworkPolicy(object, in).Spec.Ingress
			want := portsOf(append(test.ports, 18080)...)
			if forAll := rules[len(rules)-1].Ports; len(object.Spec.Ports) == 0 && !containsAll(forAll, want) {
				t.Errorf("the NetworkPolicy opens %v", forAll)
			}
			if len(test.ports) == 0 {
				return
			}

			var scraped []int32
			for _, endpoint := range desiredPodMonitor(object, in).(*monitoringv1.PodMonitor).Spec.PodMetricsEndpoints {
				if scraped = append(scraped, *endpoint.PortNumber); ptr.Deref(endpoint.FollowRedirects, true) {
					t.Errorf("Prometheus follows redirects of port %d", *endpoint.PortNumber)
				}
			}
			if diff := gocmp.Diff(test.ports, scraped); diff != "" {
				t.Errorf("scraped ports (-want +got):\n%s", diff)
			}
			if groups := desiredPrometheusRule(object, in).(*monitoringv1.PrometheusRule).Spec.Groups; len(groups) != len(test.ports) {
				t.Errorf("%d groups of alerts", len(groups))
			}
		})
	}
}

func containsAll(ports, want []networkingv1.NetworkPolicyPort) bool {
	for _, port := range want {
		if !slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return *p.Port == *port.Port }) {
			return false
		}
	}
	return true
}
