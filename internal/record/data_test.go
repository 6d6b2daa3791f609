package record

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
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
)

func revisionFor(t *testing.T, object *v1alpha2.NginxOperator, in operand.Inputs) *appsv1.ControllerRevision {
	t.Helper()
	out, err := desiredRevision(object, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// encodeAndDecode stores data in a revision and reads it back. It fails the test if etcd would
// reject the revision.
func encodeAndDecode(t *testing.T, kept Data, from operand.Files) Data {
	t.Helper()
	raw, err := kept.encode(from)
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > maxRevisionBytes {
		t.Errorf("%d bytes", len(raw))
	}
	out, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRevisionRestoresDeclaration verifies that a record restores the declaration, but with the
// current replicas.
func TestRevisionRestoresDeclaration(t *testing.T) {
	object := fixture.NewObject(fixture.OnPort(9000), func(s *v1alpha2.NginxOperatorSpec) {
		s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("0.5")}}
		s.Content = &v1alpha2.Content{ConfigMapRef: v1alpha2.ConfigMapReference{Name: "pages"}}
	})
	in := operand.Inputs{
		Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}, Content: &operand.Content{Hash: "def"}, CertificatesHash: "ghi",
	}
	record := revisionFor(t, object, in)
	kept := encodeAndDecode(t, DataOf(object, in), operand.Files{})
	now := fixture.NewObject(fixture.OnPort(1), func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](7) })
	restored, found := kept.Restore(now)
	if again := revisionFor(t, restored, found); again.Name != record.Name {
		t.Errorf("the restored declaration has another name: %s, want %s", again.Name, record.Name)
	}
	want := operand.Desired(object, in)
	*want[len(want)-1].(*appsv1.Deployment).Spec.Replicas = 7
	got := operand.Desired(restored, found)
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	now.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9}
	if restored, _ := kept.Restore(now); !cmp.Equal(restored.Spec.Autoscaling, now.Spec.Autoscaling) {
		t.Errorf("autoscaling %+v, now it is %+v", restored.Spec.Autoscaling, now.Spec.Autoscaling)
	}
	now.Spec.Autoscaling = &v1alpha2.Autoscaling{MinReplicas: ptr.To[int32](10), MaxReplicas: 9}
	if restored, _ := kept.Restore(now); restored.Spec.Autoscaling != nil {
		t.Errorf("autoscaling %+v of a spec with bounds that cross", restored.Spec.Autoscaling)
	}
	now.Spec.Replicas = ptr.To[int32](operand.MaxReplicas + 1)
	if restored, _ := kept.Restore(now); *restored.Spec.Replicas != v1alpha2.DefaultReplicas {
		t.Errorf("%d replicas of a spec that has too many", *restored.Spec.Replicas)
	}
}

// TestRevisionNames verifies that different declarations have different records. Replicas and
// autoscaling are not part of a record.
func TestRevisionNames(t *testing.T) {
	in := operand.Inputs{Image: fixture.Image, Config: operand.Configuration{Hash: "abc"}}
	before := revisionFor(t, fixture.NewObject(), in)
	scaled := revisionFor(t, fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To[int32](5) }), in)
	if scaled.Name != before.Name {
		t.Error("replicas make another revision")
	}
	autoscaled := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) { s.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 9} })
	if revisionFor(t, autoscaled, in).Name != before.Name {
		t.Error("autoscaling makes another revision")
	}
	names := map[string]bool{before.Name: true}
	other := []operand.Inputs{{Image: "other", Config: in.Config}, {Image: fixture.Image, Config: operand.Configuration{Hash: "abd"}}, in, in}
	other[2].Content, other[3].CertificatesHash = &operand.Content{Hash: "def"}, "ghi"
	for _, in := range other {
		names[revisionFor(t, fixture.NewObject(), in).Name] = true
	}
	names[revisionFor(t, fixture.NewObject(fixture.OnPort(9000)), in).Name] = true
	if len(names) != 6 {
		t.Errorf("six declarations have %d names", len(names))
	}
}

// TestRevisionFiles verifies that a record has the files of the largest possible ConfigMaps. Files
// that are too large for etcd are omitted, and reading them returns an error with the remedy.
func TestRevisionFiles(t *testing.T) {
	random := make([]byte, 1<<20)
	source := rand.NewChaCha8([32]byte{})
	_, _ = source.Read(random)
	for name, from := range map[string]operand.Files{
		"none": {},
		"text": {Config: nginxconf.Files{"nginx.conf": "server {}"}, Text: map[string]string{"a.html": "<p>ä</p>"}},
		"control": {
			Text: map[string]string{"a": strings.Repeat("\x01", 1<<18)}, Config: nginxconf.Files{"b": strings.Repeat("\x02", 1<<18)},
		},
		"incompressed": {Binary: map[string][]byte{"image.png": random}},
	} {
		t.Run(name, func(t *testing.T) {
			kept := encodeAndDecode(t, Data{Image: fixture.Image}, from)
			got, err := kept.unpack()
			if err != nil || !reflect.DeepEqual(from, got) {
				t.Errorf("files differ: %v", err)
			}
		})
	}
	kept := encodeAndDecode(t, Data{Image: fixture.Image}, operand.Files{Binary: map[string][]byte{"a": random, "b": bytes.Clone(random[1:])}})
	if _, err := kept.unpack(); err == nil || !strings.Contains(err.Error(), "status.blockedBy") {
		t.Errorf("two times a MiB that cannot be compressed: %v", err)
	}
}

// TestForgedRevisions verifies that an invalid record, which a client with write access to
// ControllerRevisions could create, is rejected.
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
			kept, err := Decode([]byte(raw))
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
	kept := Data{Files: bomb.Bytes()}
	if _, err := kept.unpack(); err == nil {
		t.Error("more was unpacked than is kept")
	}
}

// TestRecordsOfEditions verifies that each edition of the Pod template has its own record, and that
// the record of a later release is restored with the newest edition that this release knows.
func TestRecordsOfEditions(t *testing.T) {
	object, names := fixture.NewObject(), map[string]bool{}
	for edition := range 3 {
		in := operand.Inputs{Image: fixture.Image, Edition: edition}
		names[revisionFor(t, object, in).Name] = true
		kept := encodeAndDecode(t, DataOf(object, in), operand.Files{})
		if _, restored := kept.Restore(object); kept.Edition != edition || restored.Edition != operand.KnownEdition(edition) {
			t.Errorf("edition %d is recorded as %d, and restored as %d", edition, kept.Edition, restored.Edition)
		}
	}
	if len(names) != 3 {
		t.Error("editions share a record")
	}
}
