package nginxoperator

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/reference"
	"github.com/example/nginx-operator/internal/wellknown"
)

// newResolver returns a reconciler that knows these ConfigMaps and Secrets, and a function that counts how many it read.
// What it reads is handed to the function first.
func newResolver(t *testing.T, read func(client.Object) error, objects ...client.Object) (*Reconciler, func() int) {
	t.Helper()
	reads := 0
	reader := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			reads++
			if err := c.Get(ctx, key, object, opts...); err != nil {
				return err
			}
			return read(object)
		},
	}).Build()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	follow := func(kind, resource string) *reference.Tracker {
		var known []runtime.Object
		for _, object := range objects {
			switch object.(type) {
			case *corev1.ConfigMap:
				if kind != "ConfigMap" {
					continue
				}
			case *corev1.Secret:
				if kind != "Secret" {
					continue
				}
			}
			partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
			partial.Namespace, partial.Name, partial.ResourceVersion = object.GetNamespace(), object.GetName(), "999"
			known = append(known, partial)
		}
		cluster := metadatafake.NewSimpleMetadataClient(scheme, known...)
		tracker := reference.NewTracker(cluster, corev1.SchemeGroupVersion.WithResource(resource), reader)
		source := tracker.Source(func(context.Context, types.NamespacedName) []reconcile.Request { return nil })
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if err := errors.Join(source.Start(t.Context(), queue), source.WaitForSync(t.Context())); err != nil {
			t.Fatal(err)
		}
		return tracker
	}
	r := &Reconciler{Image: testImage, ConfigMaps: follow("ConfigMap", "configmaps"), Secrets: follow("Secret", "secrets")}
	return r, func() int { return reads }
}

func asRead(client.Object) error { return nil }

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeTLS, Data: data}
}

// newCertificate returns a certificate and its key as a Secret of type kubernetes.io/tls holds them.
func newCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"web.example.com"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

const goodConfig = "server {\n    listen 8080;\n    return 200;\n}\n"

func configFrom(key string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers", Key: key}}
	}
}

func contentFrom(name string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: name}}
	}
}

func certificateFrom(names ...string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		for _, name := range names {
			s.TLS = append(s.TLS, v1alpha2.TLS{SecretName: name})
		}
	}
}

// What blocks changes, in the order of the fields, each with the field, the object, what is wrong and the way out.
func TestBlockers(t *testing.T) {
	good, other := newCertificate(t), newCertificate(t)
	opaque := newSecret("shop-tls", good)
	opaque.Type = corev1.SecretTypeOpaque
	for name, test := range map[string]struct {
		change  []func(*v1alpha2.NginxOperatorSpec)
		objects []client.Object
		want    []string
	}{
		"nothing named": {},
		"all is there": {
			change: []func(*v1alpha2.NginxOperatorSpec){configFrom(""), contentFrom("pages"), certificateFrom("shop-tls")},
			objects: []client.Object{
				newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}), newConfigMap("pages", nil), newSecret("shop-tls", good),
			},
		},
		"nothing is there": {
			change:  []func(*v1alpha2.NginxOperatorSpec){certificateFrom("a", "b"), contentFrom("pages"), configFrom("")},
			objects: []client.Object{newSecret("servers", nil), newConfigMap("a", nil)},
			want: []string{
				`ReferenceNotFound spec.config.configMapRef.name: ConfigMap "servers" does not exist in this namespace: create it, or name another`,
				`ReferenceNotFound spec.content.configMapRef.name: ConfigMap "pages" does not exist in this namespace: create it, or name another`,
				`ReferenceNotFound spec.tls[0].secretName: Secret "a" does not exist in this namespace: create it, or name another`,
				`ReferenceNotFound spec.tls[1].secretName: Secret "b" does not exist in this namespace: create it, or name another`,
			},
		},
		"no such key": {
			change:  []func(*v1alpha2.NginxOperatorSpec){configFrom("web.conf")},
			objects: []client.Object{newConfigMap("servers", map[string]string{"nginx.conf": goodConfig})},
			want: []string{
				`ReferenceNotFound spec.config.configMapRef.key: ConfigMap "servers" has no key "web.conf" in its data: add it, or name another key`,
			},
		},
		"an empty configuration": {
			change:  []func(*v1alpha2.NginxOperatorSpec){configFrom("")},
			objects: []client.Object{newConfigMap("servers", map[string]string{"nginx.conf": ""})},
			want: []string{
				`InvalidConfiguration spec.config.configMapRef: ConfigMap "servers", key "nginx.conf": it is empty: ` +
					`write a server block, or remove spec.config`,
			},
		},
		"a configuration that nginx refuses": {
			change:  []func(*v1alpha2.NginxOperatorSpec){configFrom("")},
			objects: []client.Object{newConfigMap("servers", map[string]string{"nginx.conf": "server {\n    listen 8080;\n    lissten 1;\n}\n"})},
			want:    []string{`InvalidConfiguration spec.config.configMapRef: ConfigMap "servers", key "nginx.conf": line 3: lissten: `},
		},
		"a Secret of another type": {
			change: []func(*v1alpha2.NginxOperatorSpec){certificateFrom("shop-tls")}, objects: []client.Object{opaque},
			want: []string{
				`InvalidReference spec.tls[0].secretName: Secret "shop-tls" has type Opaque: ` +
					`make it again with type kubernetes.io/tls, or name another`,
			},
		},
		"a Secret without a key": {
			change:  []func(*v1alpha2.NginxOperatorSpec){certificateFrom("shop-tls")},
			objects: []client.Object{newSecret("shop-tls", map[string][]byte{"tls.crt": good["tls.crt"]})},
			want:    []string{`ReferenceNotFound spec.tls[0].secretName: Secret "shop-tls" has no key "tls.key": add it, or name another Secret`},
		},
		"a certificate of another key": {
			change:  []func(*v1alpha2.NginxOperatorSpec){certificateFrom("shop-tls")},
			objects: []client.Object{newSecret("shop-tls", map[string][]byte{"tls.crt": good["tls.crt"], "tls.key": other["tls.key"]})},
			want: []string{
				`InvalidReference spec.tls[0].secretName: Secret "shop-tls" holds no certificate that nginx could use ` +
					`(the certificate and the key cannot be read, or do not belong together): put`,
			},
		},
		"a certificate that is none": {
			change:  []func(*v1alpha2.NginxOperatorSpec){certificateFrom("shop-tls")},
			objects: []client.Object{newSecret("shop-tls", map[string][]byte{"tls.crt": []byte("x"), "tls.key": good["tls.key"]})},
			want: []string{
				`InvalidReference spec.tls[0].secretName: Secret "shop-tls" holds no certificate that nginx could use ` +
					`(there is no CERTIFICATE in PEM form): put`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, reads := newResolver(t, asRead, test.objects...)
			object := newObject(test.change...)
			var first int
			for reconcile := range 2 {
				_, blockers, err := r.resolve(t.Context(), object)
				if err != nil {
					t.Fatal(err)
				}
				if len(blockers) != len(test.want) {
					t.Fatalf("%d blockers, want %d: %v", len(blockers), len(test.want), blockers)
				}
				for i, blocker := range blockers {
					if got := blocker.reason + " " + blocker.message; !strings.HasPrefix(got, test.want[i]) {
						t.Errorf("got  %s\nwant %s", got, test.want[i])
					}
				}
				if reconcile == 0 {
					first = reads()
				}
			}
			if reads() != first && name != "nothing is there" {
				t.Errorf("the first reconcile read %d objects, the second %d more", first, reads()-first)
			}
		})
	}
}

// The second reconcile reads nothing, knows the same names, and a ConfigMap that then has to be created is filled all the same.
func TestResolveRemembersConclusions(t *testing.T) {
	r, reads := newResolver(t, func(object client.Object) error { object.SetResourceVersion("999"); return nil },
		newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}),
		newConfigMap("pages", map[string]string{"a": "b"}),
		newSecret("shop-tls", newCertificate(t)))
	object := newObject(configFrom(""), contentFrom("pages"), certificateFrom("shop-tls"))
	first, _, err := r.resolve(t.Context(), object)
	if err != nil || reads() != 3 {
		t.Fatalf("%d reads, %v", reads(), err)
	}
	second, _, err := r.resolve(t.Context(), object)
	if err != nil || reads() != 3 {
		t.Fatalf("the second reconcile read %d objects, %v", reads()-3, err)
	}
	if second.config.files != nil || second.content.text != nil {
		t.Error("content is kept in memory")
	}
	if first.certificates == "" || first.certificates != second.certificates {
		t.Errorf("certificates %q and %q", first.certificates, second.certificates)
	}
	for i, child := range desired(object, second)[:2] {
		if err := fill(object, second, r.readFiles(object, second))(t.Context(), child); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(desired(object, first)[i], child); diff != "" {
			t.Errorf("made from what is remembered (-first +second):\n%s", diff)
		}
	}
	service := desiredService(object, second)
	if err := fill(object, second, r.readFiles(object, second))(t.Context(), service); err != nil {
		t.Error(err)
	}
}

// Content that changed since it was looked at is not written under the name of the other.
func TestFillRefusesOtherContent(t *testing.T) {
	version := "999"
	changed := func(object client.Object) error {
		if configMap, ok := object.(*corev1.ConfigMap); ok && version != "999" {
			configMap.Data["nginx.conf"] += "# changed\n"
		}
		object.SetResourceVersion(version)
		return nil
	}
	r, _ := newResolver(t, changed, newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}))
	object := newObject(configFrom(""), contentFrom("servers"))
	if _, _, err := r.resolve(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	in, _, err := r.resolve(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	version = "1000"
	for _, child := range desired(object, in)[:2] {
		if err := fill(object, in, r.readFiles(object, in))(t.Context(), child); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", child.GetName(), err)
		}
	}
}

// A spec that could not be read whole is blocked, and once it was completed the configuration is looked at.
func TestUnreadableSpec(t *testing.T) {
	r, _ := newResolver(t, func(object client.Object) error { object.SetResourceVersion("999"); return nil },
		newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}))
	object := newObject(configFrom(""))
	object.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: "{"}
	_, blockers, err := r.resolve(t.Context(), object)
	if err != nil || len(blockers) != 1 || blockers[0].reason != v1alpha2.ReasonInvalidConfiguration {
		t.Errorf("blockers %v, %v", blockers, err)
	}
	object.Annotations = nil
	if in, blockers, err := r.resolve(t.Context(), object); err != nil || len(blockers) != 0 || in.config.hash == "" {
		t.Errorf("hash %q, blockers %v, %v", in.config.hash, blockers, err)
	}
}

// A failure to read is not a verdict: it is returned, to be tried again.
func TestResolveFailsToRead(t *testing.T) {
	down := errors.New("connection refused")
	for name, change := range map[string]func(*v1alpha2.NginxOperatorSpec){
		"config": configFrom(""), "content": contentFrom("servers"), "tls": certificateFrom("servers"),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, func(client.Object) error { return down }, newConfigMap("servers", nil), newSecret("servers", nil))
			_, blockers, err := r.resolve(t.Context(), newObject(change))
			if !errors.Is(err, down) || len(blockers) != 0 {
				t.Errorf("error %v, blockers %v", err, blockers)
			}
		})
	}
}

// Each change of what a Secret holds is another digest, whichever key it is in and wherever the text moves.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, files := range []map[string]string{{}, {"a": ""}, {"a": "b"}, {"ab": ""}, {"a": "b", "c": ""}, {"a": "bc"}, {"a": " ", "b": ""}} {
		if seen[digest(files)] {
			t.Errorf("%v has the digest of another", files)
		}
		seen[digest(files)] = true
	}
}

// What an object names is what the indexes find it by.
func TestNamedReferences(t *testing.T) {
	spec := &newObject(configFrom(""), contentFrom("pages"), certificateFrom("a", "b")).Spec
	if diff := gocmp.Diff([]string{"servers", "pages"}, namedConfigMaps(spec)); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"a", "b"}, namedSecrets(spec)); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	bare := &v1alpha2.NginxOperatorSpec{Config: &v1alpha2.Config{Inline: "server {}"}, Replicas: ptr.To[int32](1)}
	if names := append(namedConfigMaps(bare), namedSecrets(bare)...); len(names) != 0 {
		t.Errorf("an object that names nothing is found by %v", names)
	}
}
