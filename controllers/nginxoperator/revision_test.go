package nginxoperator

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
)

func revisionFor(t *testing.T, object *v1alpha2.NginxOperator, in inputs) *appsv1.ControllerRevision {
	t.Helper()
	out, err := desiredRevision(object, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// encodeAndDecode returns what is read of a revision that was stored. etcd has to take it.
func encodeAndDecode(t *testing.T, kept revision, from files) revision {
	t.Helper()
	raw, err := kept.encode(from)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > maxRevisionBytes {
		t.Errorf("%d bytes", len(raw))
	}
	out, err := decodeRevision(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What a revision restores is what was declared, with the replicas that are declared now.
func TestRevisionRestoresDeclaration(t *testing.T) {
	object := newObject(onPort(9000), func(s *v1alpha2.NginxOperatorSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5")}}
		s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	})
	in := inputs{image: testImage, config: configuration{hash: "abc"}, content: &content{hash: "def"}, certificates: "ghi"}
	record := revisionFor(t, object, in)
	kept := encodeAndDecode(t, revisionOf(object, in), files{})
	now := newObject(onPort(1), func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](7) })
	restored, found := kept.restore(now)
	if again := revisionFor(t, restored, found); again.Name != record.Name {
		t.Errorf("the restored declaration has another name: %s, want %s", again.Name, record.Name)
	}
	want := desired(object, in)
	*want[len(want)-1].(*appsv1.Deployment).Spec.Replicas = 7
	want[len(want)-1].SetAnnotations(map[string]string{"operator.example.com/replicas": "7"})
	got := desired(restored, found)
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	now.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9}
	if restored, _ := kept.restore(now); !cmp.Equal(restored.Spec.Autoscaling, now.Spec.Autoscaling) {
		t.Errorf("autoscaling %+v, now it is %+v", restored.Spec.Autoscaling, now.Spec.Autoscaling)
	}
	now.Spec.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](10), MaxReplicas: 9}
	if restored, _ := kept.restore(now); restored.Spec.Autoscaling != nil {
		t.Errorf("autoscaling %+v of a spec with bounds that cross", restored.Spec.Autoscaling)
	}
	now.Spec.Replicas = ptr.To[int32](maxReplicas + 1)
	if restored, _ := kept.restore(now); *restored.Spec.Replicas != v1alpha2.DefaultReplicas {
		t.Errorf("%d replicas of a spec that has too many", *restored.Spec.Replicas)
	}
}

// Another revision is what children would be restored to in another way; replicas and autoscaling are not part of it.
func TestRevisionNames(t *testing.T) {
	in := inputs{image: testImage, config: configuration{hash: "abc"}}
	before := revisionFor(t, newObject(), in)
	scaled := revisionFor(t, newObject(func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](5) }), in)
	if scaled.Name != before.Name {
		t.Error("replicas make another revision")
	}
	autoscaled := newObject(func(s *v1alpha2.NginxOperatorSpec) { s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9} })
	if revisionFor(t, autoscaled, in).Name != before.Name {
		t.Error("autoscaling makes another revision")
	}
	names := map[string]bool{before.Name: true}
	other := []inputs{{image: "other", config: in.config}, {image: testImage, config: configuration{hash: "abd"}}, in, in}
	other[2].content, other[3].certificates = &content{hash: "def"}, "ghi"
	for _, in := range other {
		names[revisionFor(t, newObject(), in).Name] = true
	}
	names[revisionFor(t, newObject(onPort(9000)), in).Name] = true
	if len(names) != 6 {
		t.Errorf("six declarations have %d names", len(names))
	}
}

// The files of the largest ConfigMaps that there can be are kept; what etcd would not take beside the rest is left out, and then
// a user reads how to go on.
func TestRevisionFiles(t *testing.T) {
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random)
	for name, from := range map[string]files{
		"none": {},
		"text": {Config: nginxconf.Files{"nginx.conf": "server {}"}, Text: map[string]string{"a.html": "<p>ä</p>"}},
		"control": {
			Text: map[string]string{"a": strings.Repeat("\x01", 1<<18)}, Config: nginxconf.Files{"b": strings.Repeat("\x02", 1<<18)},
		},
		"incompressed": {Binary: map[string][]byte{"image.png": random}},
	} {
		t.Run(name, func(t *testing.T) {
			kept := encodeAndDecode(t, revision{Image: testImage}, from)
			got, err := kept.unpack()
			if err != nil || !reflect.DeepEqual(from, got) {
				t.Errorf("files differ: %v", err)
			}
		})
	}
	kept := encodeAndDecode(t, revision{Image: testImage}, files{Binary: map[string][]byte{"a": random, "b": bytes.Clone(random[1:])}})
	if _, err := kept.unpack(); err == nil || !strings.Contains(err.Error(), "status.blockedBy") {
		t.Errorf("two times a MiB that cannot be compressed: %v", err)
	}
}

// Who may write ControllerRevisions reaches nothing with one that no declaration could have made.
func TestForgedRevisions(t *testing.T) {
	for name, raw := range map[string]string{
		"null":       `null`,
		"list":       `[]`,
		"quantity":   `{"spec":{"resources":{"limits":{"cpu":"1e1000000000"}}}}`,
		"privileged": `{"spec":{"ports":[{"name":"health","port":8080}]}}`,
		"type":       `{"spec":{"replicas":"many"}}`,
		"bytes":      `{"spec":{},"image":"` + strings.Repeat("x", 3<<20) + `"}`,
		"depth":      strings.Repeat(`{"spec":`, 100) + `1` + strings.Repeat(`}`, 100),
	} {
		t.Run(name, func(t *testing.T) {
			kept, err := decodeRevision([]byte(raw))
			if err == nil {
				if _, err = kept.unpack(); err == nil {
					t.Errorf("taken for a revision: %v", kept)
				}
			}
		})
	}
	var bomb bytes.Buffer
	writer := gzip.NewWriter(&bomb)
	_, err := writer.Write([]byte(`{"text":{"a":"` + strings.Repeat("x", maxFileBytes) + `"}}`))
	if err := errors.Join(err, writer.Close()); err != nil {
		t.Fatal(err)
	}
	kept := revision{Files: bomb.Bytes()}
	if _, err := kept.unpack(); err == nil {
		t.Error("more was unpacked than is kept")
	}
}
