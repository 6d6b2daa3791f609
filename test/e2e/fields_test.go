package e2e

// Changes of an instance under load, through its Service, plain and with TLS. No request is lost.
//
//   - The changes are another image, another inline configuration, a changed ConfigMap, other
//     content, another certificate in the Secret, and the eviction of one Pod after the other as in
//     a node drain. The instance serves each change.
//   - If a ConfigMap is missing, or nginx cannot use it, the status names it and the running Pods
//     keep serving.

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness/mutate"
)

// otherImage is a second nginx image with another tag.
const otherImage = "docker.io/nginxinc/nginx-unprivileged:1.31.9"

// newCertificate returns the data of a Secret of type kubernetes.io/tls for a host.
func newCertificate(t *testing.T, host string) map[string][]byte {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	must(t, err)
	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
}

func newSecret(t *testing.T, namespace, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeTLS,
		Data:       newCertificate(t, "first.example.com"),
	}
	must(t, suite.admin.Create(t.Context(), secret))
	return secret
}

func newConfigMap(t *testing.T, namespace, name, key, value string) *corev1.ConfigMap {
	t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{key: value}}
	must(t, suite.admin.Create(t.Context(), configMap))
	return configMap
}

// serverText returns a configuration that answers with a text on the plain port and on the TLS
// port.
func serverText(text string) string {
	return fmt.Sprintf(`server {
    listen 8080;
    listen 8443 ssl;
    ssl_certificate /etc/nginx/tls/certificate/tls.crt;
    ssl_certificate_key /etc/nginx/tls/certificate/tls.key;
    location = /revision { return 200 %q; }
    location / { root /usr/share/nginx/html; }
}
`, text)
}

// loadedInstance is an instance that uses a ConfigMap, content, and a certificate, with its load.
type loadedInstance struct {
	object          *v1alpha2.NginxOperator
	config, content *corev1.ConfigMap
	secret          *corev1.Secret
	// plain is the URL of the Service.
	plain string
	loads []*load
}

func newLoaded(t *testing.T, configuration *v1alpha2.Config) *loadedInstance {
	t.Helper()
	namespace := newNamespace(t, restricted)
	object := newObject(namespace, "web", 2)
	out := &loadedInstance{
		object:  object,
		config:  newConfigMap(t, namespace, "config", v1alpha2.DefaultConfigKey, serverText("from a ConfigMap")),
		content: newConfigMap(t, namespace, "content", "index.html", page+" first"),
		secret:  newSecret(t, namespace, "certificate"),
		plain:   suite.reach.service(namespace, "web", 8080),
	}
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "certificate", Port: ptr.To[int32](8443)}}
	object.Spec.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "content"}}
	object.Spec.Config = configuration
	object.Spec.DrainSeconds = ptr.To(mutate.ShortDrain)
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)
	out.loads = []*load{startLoad(t, namespace, out.plain), startLoad(t, namespace, suite.reach.secure(namespace, "web", 8443))}
	return out
}

// finish waits until the last old Pod has drained, and requires that no request failed.
func (l *loadedInstance) finish(t *testing.T, replicas int, during string) {
	t.Helper()
	waitForOnly(t, l.object, replicas)
	for _, load := range l.loads {
		load.finish(t, l.object.Namespace, "load of "+load.url+" through "+during)
	}
}

// fromConfigMap is the configuration in the ConfigMap of loadedInstance.
func fromConfigMap() *v1alpha2.Config {
	return &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "config"}}
}

func testChangesUnderLoad(t *testing.T) {
	web := newLoaded(t, &v1alpha2.Config{Inline: serverText("inline")})
	object, namespace := web.object, web.object.Namespace
	change := func(what string, do func(), check func()) {
		t.Helper()
		pods, began := uidsOf(t, object), time.Now()
		do()
		waitForNewPods(t, object, pods)
		t.Logf("FIGURE change of %s: done after %s", what, seconds(time.Since(began)))
		check()
	}
	revision := func(want string) func() {
		return func() { t.Helper(); answers(t, namespace, web.plain+"revision", want) }
	}
	change("image", func() {
		update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Image = otherImage })
	}, func() {
		if image := onePodOf(t, object).Spec.Containers[0].Image; image != otherImage || object.Status.Image != otherImage {
			t.Errorf("the Pods run %s, the status says %s", image, object.Status.Image)
		}
	})
	change("configuration in the spec", func() {
		update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Config.Inline = serverText("inline, changed") })
	}, revision("inline, changed"))
	change("configuration to a ConfigMap", func() {
		update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Config = fromConfigMap() })
	}, revision("from a ConfigMap"))
	change("the ConfigMap", func() {
		update(t, web.config, func(c *corev1.ConfigMap) { c.Data[v1alpha2.DefaultConfigKey] = serverText("from a ConfigMap, changed") })
	}, revision("from a ConfigMap, changed"))
	change("content", func() {
		update(t, web.content, func(c *corev1.ConfigMap) { c.Data["index.html"] = page + " second" })
	}, func() { answers(t, namespace, web.plain, page+" second") })
	change("certificate", func() {
		update(t, web.secret, func(s *corev1.Secret) { s.Data = newCertificate(t, "second.example.com") })
	}, func() {
		if suite.local {
			waitFor(t, namespace, "the new certificate", serviceDelay, func(ctx context.Context) error {
				return presents(ctx, namespace, "second.example.com")
			})
		}
	})
	web.finish(t, 2, "all changes")
}

// testBlockedChanges makes the referenced ConfigMap invalid, and then deletes it. The last good
// revision keeps running, even in new Pods.
func testBlockedChanges(t *testing.T) {
	web := newLoaded(t, fromConfigMap())
	object, namespace := web.object, web.object.Namespace
	pods := uidsOf(t, object)
	update(t, web.config, func(c *corev1.ConfigMap) {
		c.Data[v1alpha2.DefaultConfigKey] = strings.Replace(serverText("bad"), "location / {", "daemon on; location / {", 1)
	})
	waitForDegraded(t, object, v1alpha2.ReasonInvalidConfiguration)
	if message := object.Status.BlockedBy[0].Message; !strings.Contains(message, `line 7: "daemon" directive is not allowed here`) {
		t.Errorf("the bad line shows as %q", message)
	}
	must(t, suite.admin.Delete(t.Context(), web.config))
	waitForDegraded(t, object, v1alpha2.ReasonReferenceNotFound)
	if now := uidsOf(t, object); !slices.Equal(now, pods) {
		t.Errorf("Pods were replaced: %v, now %v", pods, now)
	}
	evictAll(t, object)
	answers(t, namespace, web.plain+"revision", "from a ConfigMap")
	newConfigMap(t, namespace, "config", v1alpha2.DefaultConfigKey, serverText("mended"))
	waitForRecovery(t, object)
	answers(t, namespace, web.plain+"revision", "mended")
	web.finish(t, 2, "blocked changes")
}

func onePodOf(t *testing.T, object *v1alpha2.NginxOperator) *corev1.Pod {
	t.Helper()
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	if len(pods) == 0 {
		fatal(t, object.Namespace, "%s has no Pods", object.Name)
	}
	return &pods[0]
}

// evictAll evicts each Pod of an object as `kubectl drain` does: it retries until the
// PodDisruptionBudget allows the eviction.
func evictAll(t *testing.T, object *v1alpha2.NginxOperator) {
	t.Helper()
	began := time.Now()
	pods, err := podsOf(t.Context(), object)
	must(t, err)
	for i := range pods {
		waitFor(t, object.Namespace, "an eviction", patience, func(ctx context.Context) error {
			return client.IgnoreNotFound(suite.admin.SubResource("eviction").Create(ctx, &pods[i], &policyv1.Eviction{}))
		})
	}
	waitFor(t, object.Namespace, "new Pods after an eviction", patience, func(ctx context.Context) error {
		now := &corev1.PodList{}
		err := suite.admin.List(ctx, now, client.InNamespace(object.Namespace), client.MatchingLabels(wellknown.Selector(object.Name)))
		if err != nil {
			return err
		}
		if len(now.Items) != len(pods) {
			return fmt.Errorf("there are %d Pods", len(now.Items))
		}
		for i := range now.Items {
			status := now.Items[i].Status
			if !slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				return fmt.Errorf("%s is not ready", now.Items[i].Name)
			}
		}
		return nil
	})
	t.Logf("FIGURE eviction of %d Pods: %s", len(pods), seconds(time.Since(began)))
}

// presents returns an error unless the Service presents a certificate for a host.
func presents(ctx context.Context, namespace, host string) error {
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}} // #nosec G402 -- the certificate is what is looked at
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(fmt.Sprintf("web.%s.svc.cluster.local", namespace), strconv.Itoa(8443)))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	chain := connection.(*tls.Conn).ConnectionState().PeerCertificates
	if len(chain) == 0 {
		return errors.New("there is no certificate")
	}
	return verifyHost(chain[0], host)
}

func verifyHost(certificate *x509.Certificate, host string) error {
	if err := certificate.VerifyHostname(host); err != nil {
		return fmt.Errorf("failed to find the host in the certificate: %w", err)
	}
	return nil
}
