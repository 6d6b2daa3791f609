package assets

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Every manifest in the directory decodes strictly into the type that its kind names, and none is
// forgotten here.
func TestEveryAssetDecodes(t *testing.T) {
	decoders := map[string]func(string) (any, error){
		"configmap.yaml":           func(f string) (any, error) { return decode[corev1.ConfigMap](f) },
		"deployment.yaml":          func(f string) (any, error) { return decode[appsv1.Deployment](f) },
		"exporter.yaml":            func(f string) (any, error) { return decode[corev1.Container](f) },
		"networkpolicy.yaml":       func(f string) (any, error) { return decode[networkingv1.NetworkPolicy](f) },
		"poddisruptionbudget.yaml": func(f string) (any, error) { return decode[policyv1.PodDisruptionBudget](f) },
		"prometheusrule.yaml":      func(f string) (any, error) { return decode[monitoringv1.PrometheusRule](f) },
	}
	files, err := manifests.ReadDir("manifests")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		decoder, found := decoders[file.Name()]
		if !found {
			t.Errorf("no test decodes %s", file.Name())
			continue
		}
		decoded, err := decoder(file.Name())
		if err != nil {
			t.Errorf("%s: %v", file.Name(), err)
			continue
		}
		object, isObject := decoded.(runtime.Object) // the exporter is none
		if !isObject {
			continue
		}
		if kind := object.GetObjectKind().GroupVersionKind().Kind; strings.ToLower(kind)+".yaml" != file.Name() {
			t.Errorf("%s holds a %s", file.Name(), kind)
		}
	}
	if len(files) != len(decoders) {
		t.Errorf("%d files, %d decoders", len(files), len(decoders))
	}
}

func TestDecodeIsStrict(t *testing.T) {
	if _, err := decode[corev1.Service]("deployment.yaml"); err == nil {
		t.Error("a Deployment decodes as a Service")
	}
	if _, err := decode[corev1.Service]("none.yaml"); err == nil {
		t.Error("a file that does not exist decodes")
	}
}

// What is handed out is a copy: changing it does not change what the next caller gets.
func TestAssetsAreCopies(t *testing.T) {
	Deployment().Spec.Template.Spec.Containers[0].Name = "changed"
	if name := Deployment().Spec.Template.Spec.Containers[0].Name; name != "nginx" {
		t.Errorf("the asset was changed to %q", name)
	}
}

func TestNginxConf(t *testing.T) {
	conf, err := NginxConf(NginxConfParams{Ports: []int32{80}, HealthPort: 18080, WorkerShutdownSeconds: 20, ErrorLogLevel: "notice"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"listen 80 default_server;", "listen 18080;", "daemon off;", "worker_shutdown_timeout 20s;"} {
		if strings.Count(conf, want) != 1 {
			t.Errorf("want %q once in:\n%s", want, conf)
		}
	}
}

// No text of a spec ends the word that it is printed as: not in the main context, where load_module
// stands, and not in a server.
func TestNginxConfQuotes(t *testing.T) {
	attack := "a; load_module /x.so; env A\"; user root; #\\"
	conf, err := NginxConf(NginxConfParams{
		ErrorLogLevel: attack, Environment: []string{attack}, Include: attack,
	})
	if err != nil {
		t.Fatal(err)
	}
	withTLS, err := NginxConf(NginxConfParams{ErrorLogLevel: "notice", TLS: []NginxTLS{{Port: 443, Certificate: attack, Key: attack}}})
	if err != nil {
		t.Fatal(err)
	}
	const quoted = `"a; load_module /x.so; env A\"; user root; #\\";`
	for _, want := range []string{"error_log /dev/stderr " + quoted, "env " + quoted, "include " + quoted} {
		if strings.Count(conf, want) != 1 {
			t.Errorf("want %q once in:\n%s", want, conf)
		}
	}
	for _, want := range []string{"ssl_certificate " + quoted, "ssl_certificate_key " + quoted} {
		if strings.Count(withTLS, want) != 1 {
			t.Errorf("want %q once in:\n%s", want, withTLS)
		}
	}
}
