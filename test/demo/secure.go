package main

// This file shows what v1alpha2 can say: a certificate and a configuration, how v1alpha1 sees them, and what becomes of a change that
// fails.

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

const (
	secureInstance = "secure"
	securePort     = 8443
)

// secureManifest declares an instance that speaks TLS with a configuration of its own.
const secureManifest = `
apiVersion: operator.example.com/v1alpha2
kind: NginxOperator
metadata:
  name: secure
  namespace: nginx-demo
spec:
  replicas: 2
  ports:
  - name: http
    port: 8080
  tls:
  - secretName: secure-certificate
    port: 8443
  config:
    inline: |
      server {
          listen 8080;
          return 301 https://$host:8443$request_uri;
      }
      server {
          listen 8443 ssl;
          ssl_certificate /etc/nginx/tls/secure-certificate/tls.crt;
          ssl_certificate_key /etc/nginx/tls/secure-certificate/tls.key;
          location / {
              default_type text/plain;
              return 200 "Hello from $hostname, with $ssl_protocol\n";
          }
      }
  drainSeconds: 10
`

// declareSecure makes a certificate, applies the instance and waits until it is ready.
func (d *demo) declareSecure(ctx context.Context) error {
	secret, err := certificateManifest()
	if err != nil {
		return err
	}
	// A second run keeps the certificate: another one would roll the Pods.
	found, err := d.kubectl(ctx, "get", "secret", "secure-certificate", "-n", instanceNamespace, "--ignore-not-found", "--output=name")
	if err == nil && found == "" {
		err = d.apply(ctx, secret)
	}
	if err != nil {
		return err
	}
	if err := d.apply(ctx, secureManifest); err != nil {
		return err
	}
	if err := d.waitForReady(ctx, instanceNamespace, "nginxoperator/"+secureInstance); err != nil {
		return err
	}
	fmt.Print(indent(strings.TrimSpace(secureManifest)))
	return nil
}

// certificateManifest returns a Secret with a certificate that signs itself.
func certificateManifest() (string, error) {
	host := fmt.Sprintf("%s.%s.svc.cluster.local", secureInstance, instanceNamespace)
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return "", fmt.Errorf("failed to make a certificate: %w", err)
	}
	manifest, err := yaml.Marshal(corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: instanceNamespace, Name: "secure-certificate"},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
	})
	return string(manifest), err
}

// requestSecure shows the answer over TLS.
func (d *demo) requestSecure(ctx context.Context) error {
	request, out, err := d.askSecure(ctx)
	if err == nil {
		fmt.Printf("    %s\n%s", request, indent(firstLines(out)))
	}
	return err
}

// askSecure makes one request over TLS, and returns it in words, with the answer. A cluster of the user's own has its network elsewhere:
// there it goes through the API server's proxy.
func (d *demo) askSecure(ctx context.Context) (request, answer string, err error) {
	if !d.local {
		path := fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy/", instanceNamespace, secureInstance, securePort)
		answer, err = d.kubectl(ctx, "get", "--raw", path)
		return "$ kubectl get --raw " + path, answer, err
	}
	url := fmt.Sprintf("https://%s.%s.svc.cluster.local:%d", secureInstance, instanceNamespace, securePort)
	answer, err = d.inCluster(ctx, "", filepath.Join(d.repo, "bin", "demo"), "get", url)
	return "GET " + url, answer, err
}

// quoted returns arguments as a shell takes them.
func quoted(args []string) string {
	var out []string
	for _, arg := range args {
		if strings.ContainsAny(arg, "{[") {
			arg = "'" + arg + "'"
		}
		out = append(out, arg)
	}
	return strings.Join(out, " ")
}

// missingImage cannot be pulled.
const missingImage = "ghcr.io/example/no-such-image:v0"

// takeBack makes a change that fails, and shows that it takes itself back while a client goes on.
func (d *demo) takeBack(ctx context.Context) error {
	const object = "nginxoperator/" + secureInstance
	requests := startCounter(ctx, "requests meanwhile", pagePause, func(ctx context.Context, _ int) error {
		_, _, err := d.askSecure(ctx)
		return err
	})
	defer requests.Stop()
	steps := [][]string{
		{"patch", object, "--type=merge", `--patch={"spec":{"image":"` + missingImage + `"}}`},
		{"wait", object, `--for=jsonpath={.status.conditions[?(@.type=="Degraded")].reason}=RolledBack`, "--timeout=2m"},
		{"get", object, `--output=jsonpath={.status.conditions[?(@.type=="Degraded")].message}`},
		{"patch", object, "--type=merge", `--patch={"spec":{"image":null}}`},
	}
	for _, args := range steps {
		args = append(args, "--namespace="+instanceNamespace)
		out, err := d.kubectl(ctx, args...)
		if err != nil {
			return err
		}
		fmt.Printf("    $ kubectl %s\n%s", quoted(args), indent(out))
	}
	if err := d.waitForReady(ctx, instanceNamespace, object); err != nil {
		return err
	}
	requests.Stop()
	fmt.Println("    " + requests.String())
	return requests.failure()
}

// showAtV1alpha1 shows the same object to a client that knows only the first version of the API, and that a change made
// by it keeps what it cannot say.
func (d *demo) showAtV1alpha1(ctx context.Context) error {
	const object = oldInstances + "/" + secureInstance
	spec, err := d.kubectl(ctx, "get", object, "-n", instanceNamespace, "--output=jsonpath={.apiVersion} {.spec}")
	if err != nil {
		return err
	}
	fmt.Printf("    $ kubectl get %s\n%s", object, indent(spec))
	const patch = `{"spec":{"forceRedeploy":"by a client of v1alpha1"}}`
	if _, err := d.kubectl(ctx, "patch", object, "-n", instanceNamespace, "--type=merge", "--patch="+patch); err != nil {
		return err
	}
	kept, err := d.kubectl(ctx, "get", "nginxoperators.v1alpha2.operator.example.com/"+secureInstance, "-n", instanceNamespace,
		"--output=jsonpath={.apiVersion}: forceRedeploy {.spec.forceRedeploy}, tls {.spec.tls}, drainSeconds {.spec.drainSeconds}")
	if err == nil {
		fmt.Printf("    after a change of forceRedeploy at v1alpha1:\n%s", indent(kept))
	}
	return err
}
