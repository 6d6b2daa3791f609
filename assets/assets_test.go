package assets

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestAssetsAreCopies verifies that a change of an asset does not change the next one.
func TestAssetsAreCopies(t *testing.T) {
	Deployment().Spec.Template.Spec.Containers[0].Name = "changed"
	if name := Deployment().Spec.Template.Spec.Containers[0].Name; name != "nginx" {
		t.Errorf("the asset was changed to %q", name)
	}
}

// TestDecodeIsStrict verifies that a field that the type does not have is an error.
func TestDecodeIsStrict(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a Deployment decodes as a Service")
		}
	}()
	mustDecode[corev1.Service]("deployment.yaml")
}

// TestNginxConfQuotes verifies that no text of a spec ends the word that it is printed as: not in
// the main context, where load_module stands, and not in a server.
func TestNginxConfQuotes(t *testing.T) {
	const attack = "a; load_module /x.so; env A\"; user root; #\\"
	const quoted = `"a; load_module /x.so; env A\"; user root; #\\";`
	for _, test := range []struct {
		params NginxConfParams
		want   []string
	}{
		{
			NginxConfParams{ErrorLogLevel: attack, Environment: []string{attack}, Includes: []string{attack}},
			[]string{"error_log /dev/stderr ", "env ", "include "},
		},
		{
			NginxConfParams{ErrorLogLevel: "notice", TLS: []NginxTLS{{Port: 443, Certificate: attack, Key: attack}}},
			[]string{"ssl_certificate ", "ssl_certificate_key "},
		},
	} {
		conf := NginxConf(test.params)
		for _, directive := range test.want {
			if strings.Count(conf, directive+quoted) != 1 {
				t.Errorf("want %q once in:\n%s", directive+quoted, conf)
			}
		}
	}
}
