package resolve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/reference"
	"github.com/example/nginx-operator/test/golden"
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

func secretFileFrom(key string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Files = append(s.Files, v1alpha2.File{Path: "b", SecretRef: &v1alpha2.ObjectKeyReference{Name: "robot", Key: key}})
	}
}

func contentFrom(name string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: name}}
	}
}

// itemsFrom returns a change of a spec to content with items, given by pairs of key and path.
func itemsFrom(name string, pairs ...string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		contentFrom(name)(s)
		for i := 0; i < len(pairs); i += 2 {
			s.Content.ConfigMapRef.Items = append(s.Content.ConfigMapRef.Items, v1alpha2.ContentItem{Key: pairs[i], Path: pairs[i+1]})
		}
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
// the object, the problem, and the remedy (testdata/messages.txt). The second reconcile reads
// nothing.
func TestBlockers(t *testing.T) {
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
	token := newSecret("robot", nil)
	token.Type = corev1.SecretTypeServiceAccountToken
	damaged := func(o *v1alpha2.NginxOperator) {
		o.Annotations = map[string]string{wellknown.AnnotationV1alpha2Unreadable: "{"}
	}

	cases := map[string]fixture.Case{}
	for name, test := range map[string]struct {
		change  changes
		objects []client.Object
		object  func(*v1alpha2.NginxOperator)
		valid   bool
	}{
		"nothing named": {valid: true},
		"all is there": {
			change:  changes{configFrom(""), contentFrom("pages"), certificateFrom("shop-tls")},
			objects: append(servers(goodConfig), newConfigMap("pages", nil), newSecret("shop-tls", good)), valid: true,
		},
		"nothing is there": {
			change: changes{certificateFrom("a", "b"), contentFrom("pages"), configFrom(""), fileFrom("a"), secretFileFrom("b")},
		},
		"objects of the other kind": {
			change: changes{certificateFrom("servers"), contentFrom("shop-tls")}, objects: append(servers(""), opaque),
		},
		"no such key": {change: changes{configFrom("web.conf"), fileFrom("a.conf")}, objects: servers(goodConfig)},
		"no such item": {
			change:  changes{itemsFrom("pages", "index.html", "index.html", "site.css", "css/site.css", "dot.png", "img/dot.png")},
			objects: []client.Object{newConfigMap("pages", map[string]string{"index.html": "hello"})},
		},
		"no such key in a Secret":                {change: changes{secretFileFrom("a")}, objects: []client.Object{newSecret("robot", nil)}},
		"a mask of files":                        {change: changes{fileFrom("*")}, objects: servers(goodConfig), valid: true},
		"no file that matches":                   {change: changes{fileFrom("*.inc")}, objects: servers(goodConfig)},
		"257 files":                              {change: changes{fileFrom("*.conf")}, objects: manyKeys(257, "")},
		"a mask of files of a missing ConfigMap": {change: changes{fileFrom("*.conf")}},
		"errors in included keys": {change: changes{fileFrom("*"), func(s *v1alpha2.NginxOperatorSpec) {
			s.Config = &v1alpha2.Config{Inline: "server {\n    listen 8080;\n    include /etc/nginx/files/a/*.conf;\n" +
				"    include /etc/nginx/files/a/none;\n}\n"}
		}}, objects: []client.Object{newConfigMap("servers", map[string]string{"a.conf": "\nautoindex onn;\n", "b": "c"})}},
		"no key that matches": {change: changes{configFrom("*.inc")}, objects: servers(goodConfig)},
		"256 keys":            {change: changes{configFrom("*.conf")}, objects: manyKeys(256, ""), valid: true},
		"257 keys":            {change: changes{configFrom("*.conf")}, objects: manyKeys(257, "")},
		"a long key":          {change: changes{configFrom("*.conf")}, objects: manyKeys(1, strings.Repeat("a", 242))},
		"a longest key":       {change: changes{configFrom("*.conf")}, objects: manyKeys(1, strings.Repeat("a", 237)), valid: true},
		"keys without text": {change: changes{configFrom("*.conf")}, objects: []client.Object{
			newConfigMap("servers", map[string]string{"a.conf": "", "b.conf": ""}),
		}},
		"a key in binaryData": {change: changes{configFrom("*.conf")}, objects: []client.Object{
			&corev1.ConfigMap{ObjectMeta: newConfigMap("servers", nil).ObjectMeta, BinaryData: map[string][]byte{"a.conf": {0xff}}},
		}},
		"errors in two keys": {change: changes{configFrom("*.conf")}, objects: []client.Object{newConfigMap("servers", map[string]string{
			"00-a.conf": "\ngzip onn;\n", "20-b.conf": "server {\n    listen 8080;\n    autoindex onn;\n}\n", "notes.txt": "{",
		})}},
		"values":                        {change: changes{valuesFrom("", "body")}, objects: environment("2m"), valid: true},
		"a value that adds a directive": {change: changes{valuesFrom("", "body")}, objects: environment("5m; return 500")},
		"an inline text with a value that adds a directive": {
			change: changes{valuesFrom(valuedText, "body")}, objects: environment("5m; return 500"),
		},
		"a value with a variable":       {change: changes{valuesFrom("", "body")}, objects: environment("$host")},
		"an empty value":                {change: changes{valuesFrom("", "body")}, objects: environment("\n")},
		"a value without its key":       {change: changes{valuesFrom("", "max")}, objects: environment("2m")},
		"a value without its ConfigMap": {change: changes{valuesFrom(valuedText, "body")}},
		"a resolver without name servers": {change: changes{func(s *v1alpha2.NginxOperatorSpec) {
			s.Nginx = &v1alpha2.Nginx{Resolver: &v1alpha2.Resolver{}}
		}}},
		"an empty configuration":   {change: changes{configFrom("")}, objects: servers("")},
		"a Secret of another type": {change: changes{certificateFrom("shop-tls")}, objects: []client.Object{opaque}},
		"a Secret without a key":   {change: changes{certificateFrom("shop-tls")}, objects: []client.Object{half}},
		"a certificate of another key": {
			change: changes{certificateFrom("shop-tls")}, objects: shop(good["tls.crt"], other["tls.key"]),
		},
		"a certificate that is none": {change: changes{certificateFrom("shop-tls")}, objects: shop([]byte("none"), good["tls.key"])},
		"a ServiceAccount token":     {change: changes{secretFileFrom("token")}, objects: []client.Object{token}},
		"large files": {
			change: changes{fileFrom("large")}, objects: []client.Object{
				newConfigMap("servers", map[string]string{"large": strings.Repeat("a", nginxconf.MaxBytes+1)}),
			},
		},
		"a damaged annotation": {object: damaged},
		"a patch of a protected field": {change: changes{func(s *v1alpha2.NginxOperatorSpec) {
			s.Patches = []v1alpha2.Patch{{Target: v1alpha2.PatchTarget{Kind: "Deployment"}, Patch: "spec: {replicas: 3}"}}
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, reads := newResolver(t, asRead, test.objects...)
			object := fixture.NewObject(test.change...)
			if test.object != nil {
				test.object(object)
			}
			_, blockers, err := r.Resolve(t.Context(), object, nil)
			if err != nil || (len(blockers) == 0) != test.valid {
				t.Fatalf("blockers %v, %v", blockers, err)
			}
			if !test.valid {
				cases[name] = caseOf(t, object, test.objects, blockers...)
			}

			first := reads()
			if _, _, err := r.Resolve(t.Context(), object, nil); err != nil || reads() != first {
				t.Errorf("the first reconcile read %d objects, the second %d more, %v", first, reads()-first, err)
			}
		})
	}

	maps.Copy(cases, unusableCases(t, opaque))
	fixture.GoldenCases(t, "messages.txt", cases)
}

// manyKeys returns a ConfigMap with a number of valid configurations, whose keys end with ".conf".
func manyKeys(number int, prefix string) []client.Object {
	data := map[string]string{"notes.txt": "{"}
	for i := range number {
		data[fmt.Sprintf("%s%03d.conf", prefix, i)] = goodConfig
	}
	return []client.Object{newConfigMap("servers", data)}
}

// unusableCases returns cases of running Pods whose objects are missing or unusable.
func unusableCases(t *testing.T, opaque *corev1.Secret) map[string]fixture.Case {
	t.Helper()
	cases := map[string]fixture.Case{}
	object := fixture.NewObject()
	template := fixture.NewDeployment(1).Spec.Template
	template.Spec.Volumes = []corev1.Volume{
		{Name: "tls-0", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "shop-tls"}}},
		{Name: "pages", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "pages"},
		}}},
	}
	for name, objects := range map[string][]client.Object{
		"running Pods whose objects are missing": nil, "running Pods with a Secret of another type": {opaque, newConfigMap("pages", nil)},
	} {
		r, _ := newResolver(t, asRead, objects...)
		unusable, err := r.Unusable(t.Context(), object, &template)
		if err != nil {
			t.Fatal(err)
		}
		var blockers []failure.Failure
		for _, needed := range unusable {
			blockers = append(blockers, needed.Failure)
		}
		entry := caseOf(t, object, objects, blockers...)
		entry.Input = "# The Pods mount Secret shop-tls and ConfigMap pages.\n" + entry.Input
		cases[name] = entry
	}
	return cases
}

// caseOf returns a case of the golden file: the spec, the existing objects, and the blockers.
func caseOf(t *testing.T, object *v1alpha2.NginxOperator, objects []client.Object, blockers ...failure.Failure) fixture.Case {
	t.Helper()
	spec := object.Spec.DeepCopy()
	spec.Replicas = nil
	raw, err := yaml.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	entry := fixture.Case{Input: strings.TrimPrefix(string(raw), "{}\n")}
	for key, value := range object.Annotations {
		entry.Input += fmt.Sprintf("# metadata.annotations[%s]: %q\n", key, value)
	}
	for _, existing := range objects {
		switch existing := existing.(type) {
		case *corev1.ConfigMap:
			entry.Input += fmt.Sprintf("# ConfigMap %s has the keys %q\n", existing.Name, slices.Sorted(maps.Keys(existing.Data)))
		case *corev1.Secret:
			keys := slices.Sorted(maps.Keys(existing.Data))
			entry.Input += fmt.Sprintf("# Secret %s of type %s has the keys %q\n", existing.Name, existing.Type, keys)
		}
	}
	for _, blocker := range blockers {
		entry.Messages = append(entry.Messages, blocker.Reason+" "+blocker.Message)
	}
	return entry
}

// TestConfigurationInConfigMap verifies that an error in a configuration has the field, the
// ConfigMap, and the line. internal/nginxconf has its messages.
func TestConfigurationInConfigMap(t *testing.T) {
	r, _ := newResolver(t, asRead, newConfigMap("servers", map[string]string{"nginx.conf": "server {\n    listen 8080;\n    lissten 1;\n}\n"}))
	_, blockers, err := r.Resolve(t.Context(), fixture.NewObject(configFrom("")), nil)
	const want = `spec.config.configMapRef: ConfigMap "servers", key "nginx.conf": line 3: `
	if err != nil || len(blockers) != 1 || blockers[0].Reason != v1alpha2.ReasonInvalidConfiguration ||
		!strings.HasPrefix(blockers[0].Message, want) {
		t.Errorf("want %q, got %v, %v", want, blockers, err)
	}
}

// TestMessages verifies that each message is in the golden file.
func TestMessages(t *testing.T) {
	golden.Messages(t, map[string]string{
		"failed to encode spec: …": "every spec can be encoded",
		"it has changed since its hash was computed, so the reconcile is repeated": "the reason of a conflict, which is only logged",
		"Failed to list the NginxOperators that reference an object":               "a message of the log",
	}, "testdata/messages.txt")
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

// TestResolveItems verifies that the copy of content has the keys of its items alone, from data and
// binaryData, that another key or another path does not change its hash, and that no items are all
// keys.
func TestResolveItems(t *testing.T) {
	resolved := func(other string, change func(*v1alpha2.NginxOperatorSpec)) operand.Inputs {
		source := newConfigMap("pages", map[string]string{"index.html": "hello", "site.css": "h1 {}", "other": other})
		source.BinaryData = map[string][]byte{"dot.png": {0x89, 'P'}}
		r, _ := newResolver(t, asRead, source)
		in, blockers, err := r.Resolve(t.Context(), fixture.NewObject(change), nil)
		if err != nil || len(blockers) != 0 {
			t.Fatalf("blockers %v, %v", blockers, err)
		}
		return in
	}
	items := itemsFrom("pages", "site.css", "css/site.css", "dot.png", "img/a/dot.png", "site.css", "b.css")
	first, all := resolved("a", items), resolved("a", contentFrom("pages"))
	want := operand.Content{Hash: first.Content.Hash, Text: map[string]string{"site.css": "h1 {}"}}
	want.Binary = map[string][]byte{"dot.png": {0x89, 'P'}}
	if diff := gocmp.Diff(want, *first.Content); diff != "" || len(all.Content.Text) != 3 || first.Content.Hash == all.Content.Hash {
		t.Errorf("all keys %v (-want +got):\n%s", all.Content, diff)
	}
	moved := itemsFrom("pages", "site.css", "a.css", "dot.png", "a.png")
	for name, same := range map[string]operand.Inputs{"another key": resolved("b", items), "another path": resolved("a", moved)} {
		if same.Content.Hash != first.Content.Hash {
			t.Errorf("%s: hash %s, was %s", name, same.Content.Hash, first.Content.Hash)
		}
	}
}

// TestResolveKeys verifies that a mask renders each matching key, that a new matching key changes the
// hashes and another key does not, and that the files are read again as they were rendered.
func TestResolveKeys(t *testing.T) {
	resolved := func(data map[string]string) operand.Inputs {
		r, _ := newResolver(t, asRead, newConfigMap("servers", data))
		object := fixture.NewObject(configFrom("*.conf"))
		in, blockers, err := r.Resolve(t.Context(), object, nil)
		if err != nil || len(blockers) != 0 {
			t.Fatalf("blockers %v, %v", blockers, err)
		}
		want := in.Config.Files
		in.Config.Files = nil
		files, err := r.ReadFiles(object, in)(t.Context())
		if diff := gocmp.Diff(want, files.Config); diff != "" || err != nil || files.Config["servers-b.conf"] != goodConfig {
			t.Fatalf("%v, read again (-first +second):\n%s", err, diff)
		}
		return in
	}
	first := resolved(map[string]string{"a.conf": "gzip on;\n", "b.conf": goodConfig})
	other := resolved(map[string]string{"a.conf": "gzip on;\n", "b.conf": goodConfig, "notes.txt": "a"})
	added := resolved(map[string]string{"a.conf": "gzip on;\n", "b.conf": goodConfig, "c.conf": ""})
	if other.Config.Hash != first.Config.Hash || other.ServersHash != first.ServersHash {
		t.Error("another key changes a hash")
	}
	if added.Config.Hash == first.Config.Hash || added.ServersHash == first.ServersHash {
		t.Error("a new key does not change a hash")
	}
}

// TestResolveDirectories verifies that a mask of files has each matching key, that a change of such a
// key changes the hash of the directory and another key does not, and that the files are read again.
func TestResolveDirectories(t *testing.T) {
	resolved := func(data map[string]string) operand.Inputs {
		source := newConfigMap("servers", data)
		source.BinaryData = map[string][]byte{"a.bin": {0xff}}
		r, _ := newResolver(t, asRead, source)
		object := fixture.NewObject(fileFrom("a*"), func(s *v1alpha2.NginxOperatorSpec) {
			s.Config = &v1alpha2.Config{Inline: "include /etc/nginx/files/a/a.conf;\nserver { listen 8080; }\n"}
		})
		in, blockers, err := r.Resolve(t.Context(), object, nil)
		if err != nil || len(blockers) != 0 || in.Files != nil || len(in.Directories) != 1 {
			t.Fatalf("blockers %v, %v, inputs %v", blockers, err, in)
		}
		files, err := r.ReadFiles(object, in)(t.Context())
		want := map[string]string{"a.conf": data["a.conf"]}
		if diff := gocmp.Diff(want, files.Directories["a"].Text); diff != "" || err != nil || len(files.Directories["a"].Binary) != 1 {
			t.Fatalf("%v, (-want +got):\n%s", err, diff)
		}
		return in
	}
	first := resolved(map[string]string{"a.conf": "gzip on;\n"})
	other := resolved(map[string]string{"a.conf": "gzip on;\n", "b.conf": "a"})
	changed := resolved(map[string]string{"a.conf": "gzip off;\n"})
	if hash := first.Directories[0].Hash; hash != other.Directories[0].Hash || hash == changed.Directories[0].Hash {
		t.Errorf("hashes %v, %v, %v", first.Directories, other.Directories, changed.Directories)
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
