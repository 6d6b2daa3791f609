package nginxoperator

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
)

// monitored returns a change of a spec to monitoring.
func monitored(change ...func(*v1alpha2.Monitoring)) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Monitoring = &v1alpha2.Monitoring{PodMonitor: &v1alpha2.PodMonitor{}, Alerts: &v1alpha2.Alerts{}}
		for _, f := range change {
			f(s.Monitoring)
		}
	}
}

func kindsOf(object *v1alpha2.NginxOperator) string {
	in := inputs{image: testImage, exporter: defaults.ExporterImage(&object.Spec, testExporter)}
	var kinds []string
	for _, child := range desired(object, in) {
		kinds = append(kinds, child.GetObjectKind().GroupVersionKind().Kind)
	}
	return strings.Join(kinds, " ")
}

// The exporter runs where monitoring is on and nobody brings their own, with the rights of nginx, as the last of what starts before it.
func TestExporter(t *testing.T) {
	const all, none = "ConfigMap Service NetworkPolicy Deployment PodMonitor PrometheusRule", "ConfigMap Service NetworkPolicy Deployment"
	for name, test := range map[string]struct {
		change func(*v1alpha2.NginxOperatorSpec)
		kinds  string
		image  string
		args   []string
	}{
		"not declared": {change: func(*v1alpha2.NginxOperatorSpec) {}, kinds: none},
		"switched off": {change: monitored(func(m *v1alpha2.Monitoring) { m.Enabled = ptr.To(false) }), kinds: none},
		"none": {
			change: func(s *v1alpha2.NginxOperatorSpec) {
				s.Monitoring = &v1alpha2.Monitoring{Exporter: v1alpha2.ExporterNone}
			},
			kinds: none,
		},
		"on": {
			change: monitored(), kinds: all, image: testExporter,
			args: []string{"--nginx.scrape-uri=http://127.0.0.1:18081/stub_status", "--web.listen-address=:9113"},
		},
		"where nginx listens itself": {
			change: func(s *v1alpha2.NginxOperatorSpec) {
				monitored(func(m *v1alpha2.Monitoring) { m.Enabled, m.Image = ptr.To(true), "example.com/exporter:2" })(s)
				for _, port := range []int32{9113, 18080, 18082} {
					s.Ports = append(s.Ports, v1alpha2.Port{Port: port})
				}
			},
			kinds: all, image: "example.com/exporter:2",
			args: []string{"--nginx.scrape-uri=http://127.0.0.1:18083/stub_status", "--web.listen-address=:9114"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject(func(s *v1alpha2.NginxOperatorSpec) {
				s.Sidecars = []v1alpha2.Container{{Name: "refresh"}}
			}, test.change)
			if got := kindsOf(object); got != test.kinds {
				t.Errorf("children %s", got)
			}
			in := inputs{image: testImage, exporter: defaults.ExporterImage(&object.Spec, testExporter)}
			pod := &desiredDeployment(object, in).Spec.Template.Spec
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
			number := defaults.MetricsPort(&object.Spec)
			if exporter.Ports[0].ContainerPort != number || *desiredPodMonitor(object, in).Spec.PodMetricsEndpoints[0].PortNumber != number {
				t.Errorf("the exporter listens on %d, declared %v", number, exporter.Ports)
			}
			rules := desiredNetworkPolicy(object, in).Spec.Ingress
			forAll := rules[len(rules)-1]
			if last := forAll.Ports[len(forAll.Ports)-1]; len(forAll.From) > 0 || last.Port.IntVal != number {
				t.Errorf("the NetworkPolicy lets all reach %+v", last.Port)
			}
		})
	}
}

// A NetworkPolicy that restricts who may reach the served ports lets Prometheus reach the metrics.
func TestMetricsBehindANetworkPolicy(t *testing.T) {
	object := newObject(monitored(), func(s *v1alpha2.NginxOperatorSpec) {
		s.NetworkPolicy = &v1alpha2.NetworkPolicy{From: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "192.0.2.0/24"}}}}
	})
	rules := desiredNetworkPolicy(object, inputs{}).Spec.Ingress
	if len(rules) != 2 || len(rules[0].Ports) != 1 || len(rules[1].Ports) != 2 || rules[1].Ports[1].Port.IntVal != 9113 {
		t.Errorf("rules %+v", rules)
	}
}

// The exporter's image is part of what is recorded: a release with another one rolls instances in their turn.
func TestExporterImageOfARelease(t *testing.T) {
	object := newObject(monitored())
	before, now := inputs{image: testImage, exporter: testExporter}, inputs{image: testImage, exporter: "example.com/exporter:2"}
	if got := differences(&declaration{object: object, in: now}, &declaration{object: object, in: before}); got !=
		`image of the exporter "example.com/exporter:2"` {
		t.Errorf("differences %q", got)
	}
	_, restored := revisionOf(object, before).restore(object)
	if restored.exporter != testExporter {
		t.Errorf("restored %q", restored.exporter)
	}
}

// Each alert names the instance, and the one about a limit is there where the limit is known.
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
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject(test.change, monitored(func(m *v1alpha2.Monitoring) {
				m.Alerts.Labels = map[string]string{"release": "prometheus", wellknown.LabelName: "mine"}
			}))
			rule := desiredPrometheusRule(object, inputs{image: testImage})
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
