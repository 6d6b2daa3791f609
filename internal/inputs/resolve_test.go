package inputs

import (
	"context"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/reference"
)

// newResolver returns a Resolver that knows these ConfigMaps and Secrets, and a function that
// returns the number of reads. The Resolver calls read for each object that it reads.
func newResolver(t *testing.T, read func(client.Object) error, objects ...client.Object) (Resolver, func() int) {
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
			if _, isSecret := object.(*corev1.Secret); isSecret == (kind == "Secret") {
				partial := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}}
				partial.Namespace, partial.Name, partial.ResourceVersion = object.GetNamespace(), object.GetName(), "999"
				known = append(known, partial)
			}
		}
		cluster := metadatafake.NewSimpleMetadataClient(scheme, known...)
		tracker := reference.NewTracker(cluster, corev1.SchemeGroupVersion.WithResource(resource), reader, nil)
		source := tracker.Source(func(context.Context, types.NamespacedName) []reconcile.Request { return nil }, func(context.Context) {})
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		if err := source.Start(t.Context(), queue); err != nil {
			t.Fatal(err)
		}
		tracker.Await(t.Context())
		return tracker
	}
	r := Resolver{
		Release:    operand.Release{Image: fixture.Image},
		ConfigMaps: follow("ConfigMap", "configmaps"), Secrets: follow("Secret", "secrets"),
	}
	return r, func() int { return reads }
}

func asRead(client.Object) error { return nil }

func newConfigMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func newSecret(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Type: corev1.SecretTypeTLS, Data: data}
}

// newCertificate returns the data of a Secret of type kubernetes.io/tls.
func newCertificate(t *testing.T) map[string][]byte {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("web.example.com", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
}

const goodConfig = "server {\n    listen 8080;\n    return 200;\n}\n"

func configFrom(key string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers", Key: key}}
	}
}

func fileFrom(key string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Files = []v1alpha2.File{{Path: "a", ConfigMapRef: &v1alpha2.FileReference{Name: "servers", Key: key}}}
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

// TestBlockers verifies that blockers are in the order of the fields, and that each has the field,
// the object, the problem, and the remedy. The second reconcile reads nothing.
func TestBlockers(t *testing.T) {
	const (
		absent    = " does not exist in this namespace: create it, or name another"
		temporary = `; if cert-manager writes it after an HTTP-01 challenge that this instance answers, set the annotation ` +
			`cert-manager.io/issue-temporary-certificate: "true" on the Certificate`
		ofConfig = "InvalidConfiguration spec.config.configMapRef"
		shopTLS  = `spec.tls[0].secretName: Secret "shop-tls"`
		mask     = "has a *, which this release does not support"
	)
	type changes = []func(*v1alpha2.NginxOperatorSpec)
	good, other := newCertificate(t), newCertificate(t)
	servers := func(text string) []client.Object {
		return []client.Object{newConfigMap("servers", map[string]string{"nginx.conf": text})}
	}
	shop := func(certificate, key []byte) []client.Object {
		return []client.Object{newSecret("shop-tls", map[string][]byte{"tls.crt": certificate, "tls.key": key})}
	}
	opaque, half := newSecret("shop-tls", good), newSecret("shop-tls", map[string][]byte{"tls.crt": good["tls.crt"]})
	opaque.Type = corev1.SecretTypeOpaque

	for name, test := range map[string]struct {
		change  changes
		objects []client.Object
		want    []string
	}{
		"nothing named": {},
		"all is there": {
			change:  changes{configFrom(""), contentFrom("pages"), certificateFrom("shop-tls")},
			objects: append(servers(goodConfig), newConfigMap("pages", nil), newSecret("shop-tls", good)),
		},
		"nothing is there": {
			change: changes{certificateFrom("a", "b"), contentFrom("pages"), configFrom("")},
			want: []string{
				`ReferenceNotFound spec.config.configMapRef.name: ConfigMap "servers"` + absent,
				`ReferenceNotFound spec.content.configMapRef.name: ConfigMap "pages"` + absent,
				`ReferenceNotFound spec.tls[0].secretName: Secret "a"` + absent + temporary,
				`ReferenceNotFound spec.tls[1].secretName: Secret "b"` + absent + temporary,
			},
		},
		"objects of the other kind": {
			change: changes{certificateFrom("servers"), contentFrom("shop-tls")}, objects: append(servers(""), opaque),
			want: []string{
				`ReferenceNotFound spec.content.configMapRef.name: ConfigMap "shop-tls"` + absent,
				`ReferenceNotFound spec.tls[0].secretName: Secret "servers"` + absent + temporary,
			},
		},
		"no such key": {change: changes{configFrom("web.conf")}, objects: servers(goodConfig), want: []string{
			`ReferenceNotFound spec.config.configMapRef.key: ConfigMap "servers" has no key "web.conf" in its data: ` +
				"add it, or name another key",
		}},
		"a mask": { // the spec has an error for it
			change: changes{configFrom("*.conf"), fileFrom("*")}, objects: servers(goodConfig),
			want: []string{
				ofConfig + `.key: Invalid value: "*.conf": ` + mask,
				`InvalidConfiguration spec.files[0].configMapRef.key: Invalid value: "*": ` + mask,
			},
		},
		"an empty configuration": {change: changes{configFrom("")}, objects: servers(""), want: []string{
			ofConfig + `: ConfigMap "servers", key "nginx.conf": it is empty: write a server block, or remove spec.config`,
		}},
		"a configuration that nginx refuses": {
			change: changes{configFrom("")}, objects: servers("server {\n    listen 8080;\n    lissten 1;\n}\n"),
			want: []string{ofConfig + `: ConfigMap "servers", key "nginx.conf": line 3: lissten: `},
		},
		"a Secret of another type": {
			change: changes{certificateFrom("shop-tls")}, objects: []client.Object{opaque},
			want: []string{
				"InvalidReference " + shopTLS + " has type Opaque: make it again with type kubernetes.io/tls, or name another",
			},
		},
		"a Secret without a key": {
			change: changes{certificateFrom("shop-tls")}, objects: []client.Object{half},
			want: []string{"ReferenceNotFound " + shopTLS + ` has no key "tls.key": add it, or name another Secret`},
		},
		"a certificate of another key": {
			change: changes{certificateFrom("shop-tls")}, objects: shop(good["tls.crt"], other["tls.key"]),
			want: []string{
				"InvalidReference " + shopTLS + " holds no certificate that nginx could use " +
					"(the certificate and the key cannot be read, or do not belong together): put",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, reads := newResolver(t, asRead, test.objects...)
			object := fixture.NewObject(test.change...)
			_, blockers, err := r.Resolve(t.Context(), object, nil)
			if err != nil || len(blockers) != len(test.want) {
				t.Fatalf("%d blockers, want %d: %v, %v", len(blockers), len(test.want), blockers, err)
			}
			for i, blocker := range blockers {
				if text := blocker.Reason + " " + blocker.Message; !strings.HasPrefix(text, test.want[i]) {
					t.Errorf("got  %s\nwant %s", text, test.want[i])
				}
			}

			first := reads()
			if _, _, err := r.Resolve(t.Context(), object, nil); err != nil || reads() != first {
				t.Errorf("the first reconcile read %d objects, the second %d more, %v", first, reads()-first, err)
			}
		})
	}
}

// TestSpecBlockers verifies that a spec that cannot be read completely is blocked, and that a spec
// with refused values is blocked by these alone. No configuration is rendered from either.
func TestSpecBlockers(t *testing.T) {
	r, _ := newResolver(t, asRead, newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}))
	refused := failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: "spec.replicas: Invalid value"}
	object := fixture.NewObject(configFrom(""), func(s *v1alpha2.NginxOperatorSpec) { s.Image = ":" })
	object.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: "{"}
	in, blockers, err := r.Resolve(t.Context(), object, []failure.Failure{refused})
	if err != nil || len(blockers) != 2 || blockers[1] != refused || in.Config.Hash != "" {
		t.Errorf("hash %q, blockers %v, %v", in.Config.Hash, blockers, err)
	}

	object.Annotations, object.Spec.Image = nil, ""
	if in, blockers, err := r.Resolve(t.Context(), object, nil); err != nil || len(blockers) != 0 || in.Config.Hash == "" {
		t.Errorf("hash %q, blockers %v, %v", in.Config.Hash, blockers, err)
	}
}

// TestResolveFailsToRead verifies that a failed read is returned as an error, and is not a blocker.
func TestResolveFailsToRead(t *testing.T) {
	down := errors.New("connection refused")
	for name, change := range map[string]func(*v1alpha2.NginxOperatorSpec){
		"config": configFrom(""), "content": contentFrom("servers"), "tls": certificateFrom("servers"),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newResolver(t, func(client.Object) error { return down }, newConfigMap("servers", nil), newSecret("servers", nil))
			_, blockers, err := r.Resolve(t.Context(), fixture.NewObject(change), nil)
			if !errors.Is(err, down) || len(blockers) != 0 {
				t.Errorf("error %v, blockers %v", err, blockers)
			}
		})
	}
}

// TestResolveRemembersConclusions verifies that the second reconcile reads nothing and has the same
// hashes. Only the creation of a ConfigMap reads the data again.
func TestResolveRemembersConclusions(t *testing.T) {
	r, reads := newResolver(t, func(object client.Object) error { object.SetResourceVersion("999"); return nil },
		newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}),
		newConfigMap("pages", map[string]string{"a": "b"}),
		newSecret("shop-tls", newCertificate(t)))
	object := fixture.NewObject(configFrom(""), contentFrom("pages"), certificateFrom("shop-tls"))
	first, _, err := r.Resolve(t.Context(), object, nil)
	if err != nil || reads() != 3 {
		t.Fatalf("%d reads, %v", reads(), err)
	}
	second, _, err := r.Resolve(t.Context(), object, nil)
	if err != nil || reads() != 3 {
		t.Fatalf("the second reconcile read %d objects, %v", reads()-3, err)
	}
	if second.Config.Files != nil || second.Content.Text != nil {
		t.Error("content is kept in memory")
	}
	if first.CertificatesHash == "" || first.CertificatesHash != second.CertificatesHash {
		t.Errorf("certificates %q and %q", first.CertificatesHash, second.CertificatesHash)
	}
	files, err := r.ReadFiles(object, second)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := operand.Files{Config: first.Config.Files, Text: first.Content.Text, Binary: first.Content.Binary}
	if diff := gocmp.Diff(want, files); diff != "" || len(files.Config) == 0 || len(files.Text) == 0 {
		t.Errorf("files that are read again (-first +second):\n%s", diff)
	}
}

// TestReadFilesRefusesOtherContent verifies that content that changed after its hash was computed
// is not returned for that hash.
func TestReadFilesRefusesOtherContent(t *testing.T) {
	version := "999"
	changed := func(object client.Object) error {
		if configMap, ok := object.(*corev1.ConfigMap); ok && version != "999" {
			configMap.Data["nginx.conf"] += "# changed\n"
		}
		object.SetResourceVersion(version)
		return nil
	}
	r, _ := newResolver(t, changed, newConfigMap("servers", map[string]string{"nginx.conf": goodConfig}))
	object := fixture.NewObject(configFrom(""), contentFrom("servers"))
	if _, _, err := r.Resolve(t.Context(), object, nil); err != nil {
		t.Fatal(err)
	}
	in, _, err := r.Resolve(t.Context(), object, nil)
	if err != nil {
		t.Fatal(err)
	}
	version = "1000"
	if files, err := r.ReadFiles(object, in)(t.Context()); !apierrors.IsConflict(err) {
		t.Errorf("read %v, %v", files, err)
	}
}
