package e2e

// This file has the objects that a hostile tenant stores. Many are as large as the API server
// accepts, and reading one costs far more than writing it.

import (
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// victimName is the name of an instance of the tenant, which the tenant attacks.
const victimName = "victim"

// writtenAttack has objects of one malicious kind.
type writtenAttack struct {
	name    string
	objects []client.Object
}

// attacks returns what a tenant can store, with admission and without. The names of the objects
// have a prefix. object is an instance in another namespace.
func attacks(t *testing.T, prefix string, object *v1alpha2.NginxOperator) []writtenAttack {
	t.Helper()
	return []writtenAttack{
		{"configurations in ConfigMaps", configurationObjects(prefix)},
		{"a key that never ends", keyObjects(t, prefix)},
		{"labels and owners that are not theirs", forgedObjects(prefix, object)},
	}
}

// childLabels returns the labels by which the operator finds the children of an instance.
func childLabels(instance string) map[string]string {
	labels := wellknown.Selector(instance)
	labels[wellknown.LabelPartOf] = wellknown.OperatorName
	return labels
}

// nginxOperator returns an instance without Pods. It is untyped, so its spec can have invalid
// values.
func nginxOperator(name string) *unstructured.Unstructured {
	object := objectOf(v1alpha2.GroupVersion.String(), "NginxOperator", name)
	object.Object["spec"] = map[string]any{"replicas": int64(0)}
	return object
}

// configurations are nginx configurations that are expensive to check. Each key names the expensive
// part.
var configurations = map[string]string{
	"nested":     strings.Repeat("a{", 340000) + strings.Repeat("}", 340000),
	"named":      nestedNames(100, 4000, 250000),
	"flat":       strings.Repeat("a;", 510000),
	"condition":  "server { listen 8080; if () { } }",
	"word":       strings.Repeat("a", 1000000),
	"words":      strings.Repeat("a ", 500000) + ";",
	"quotes":     strings.Repeat(`"`, 900001),
	"comments":   strings.Repeat("#\n", 450000),
	"lua":        strings.Repeat("content_by_lua_block { ", 40000),
	"characters": "server { listen 8080; " + strings.Repeat("allow "+strings.Repeat("\U0001F600", 1022)+"; ", 20) + "}",
	"variables":  "server { listen 8080; return 200 \"" + strings.Repeat("$", 900000) + "\"; }",
}

// nestedNames returns nested blocks with long names around many directives.
func nestedNames(depth, length, directives int) string {
	return strings.Repeat(strings.Repeat("n", length)+"{", depth) + strings.Repeat("a;", directives) + strings.Repeat("}", depth)
}

func configurationObjects(prefix string) []client.Object {
	var out []client.Object
	for name, text := range configurations {
		name = prefix + "-" + name
		out = append(out, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{v1alpha2.DefaultConfigKey: text}})
		for i := range scaled(2, 7) {
			object := nginxOperator(fmt.Sprintf("%s-%d", name, i))
			spec := object.Object["spec"].(map[string]any)
			spec["config"] = map[string]any{"configMapRef": map[string]any{"name": name}}
			if i == 0 {
				// The check differs for an image that may have its own modules.
				spec["image"] = missingImage
			}
			out = append(out, object)
		}
	}
	return out
}

// labelObjects returns ConfigMaps with as many labels as fit.
func labelObjects() []client.Object {
	var out []client.Object
	for i := range scaled(10, 60) {
		labels := childLabels("nobody")
		for n := range 17000 {
			labels[fmt.Sprintf("example.com/label-%d", n)] = fmt.Sprintf("value-%d-%d", i, n)
		}
		out = append(out, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("labels-%d", i), Labels: labels}})
	}
	return out
}

// keyObjects returns a Secret with an invalid key that is expensive to check, a Secret with PEM
// blocks of the type secretText, and an instance for each that serves with it.
func keyObjects(t *testing.T, prefix string) []client.Object {
	t.Helper()
	data := newCertificate(t, "first.example.com")
	data[corev1.TLSPrivateKeyKey] = hugeKey(t)
	endless := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: prefix + "-key"}, Type: corev1.SecretTypeTLS, Data: data}
	block := []byte("-----BEGIN " + secretText + "-----\nAAAA\n-----END " + secretText + "-----\n")
	text := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: prefix + "-text"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: block, corev1.TLSPrivateKeyKey: block},
	}
	out := []client.Object{endless, text}
	for _, secret := range []string{endless.Name, text.Name} {
		object := nginxOperator(secret)
		object.Object["spec"].(map[string]any)["tls"] = []any{map[string]any{"secretName": secret}}
		out = append(out, object)
	}
	return out
}

// hugeKey returns an RSA key in PKCS #1 form, whose factors are random odd numbers. The API server
// checks it too, which takes 10 s in a full run.
func hugeKey(t *testing.T) []byte {
	t.Helper()
	bits := scaled(100_000, 300_000)
	source := rand.NewChaCha8([32]byte{1})
	odd := func() *big.Int {
		raw := make([]byte, bits/8)
		_, _ = source.Read(raw)
		raw[0], raw[len(raw)-1] = raw[0]|0xc0, raw[len(raw)-1]|1
		return new(big.Int).SetBytes(raw)
	}
	p, q, d := odd(), odd(), odd()
	one := big.NewInt(1)
	der, err := asn1.Marshal(struct {
		Version                        int
		N, E, D, P, Q, DP, DQ, Inverse *big.Int
	}{
		N: new(big.Int).Mul(p, q), E: big.NewInt(65537), D: d, P: p, Q: q,
		DP: new(big.Int).Mod(d, new(big.Int).Sub(p, one)), DQ: new(big.Int).Mod(d, new(big.Int).Sub(q, one)), Inverse: odd(),
	})
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der})
}

// forgedObjects returns objects that look like the operator's own. They have the labels of an
// instance in another namespace, or of the tenant's victim. Their owner is the instance in the
// other namespace, except for Pods, which have no owner. The Services of the instances select the
// Pods.
func forgedObjects(prefix string, object *v1alpha2.NginxOperator) []client.Object {
	owner := metav1.OwnerReference{
		APIVersion: v1alpha2.GroupVersion.String(), Kind: "NginxOperator", Name: object.Name, UID: object.UID, Controller: ptr.To(true),
	}
	var out []client.Object
	for _, instance := range []string{object.Name, victimName} {
		meta := func(kind string) metav1.ObjectMeta {
			return metav1.ObjectMeta{
				Name:   strings.Join([]string{prefix, instance, kind}, "-"),
				Labels: childLabels(instance), OwnerReferences: []metav1.OwnerReference{owner},
			}
		}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: childLabels(instance)}, Spec: idlePod()}
		selector := &metav1.LabelSelector{MatchLabels: childLabels(instance)}
		pod := &corev1.Pod{ObjectMeta: meta("pod"), Spec: idlePod()}
		pod.OwnerReferences = nil // otherwise the garbage collector deletes it
		out = append(out, pod,
			&corev1.ConfigMap{ObjectMeta: meta("configmap")},
			&corev1.Service{ObjectMeta: meta("service"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
			&appsv1.ReplicaSet{ObjectMeta: meta("replicaset"), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}},
			&appsv1.Deployment{ObjectMeta: meta("deployment"), Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](0), Selector: selector, Template: template,
			}})
	}
	return out
}

// idlePod returns a Pod that the Pod Security level restricted accepts and that never starts.
func idlePod() corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "nginx", Image: missingImage,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}
