package nginxoperator

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// withFiles returns a change of a spec to a file from a ConfigMap and one from a Secret.
func withFiles(paths ...string) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		for _, path := range paths {
			s.Files = append(s.Files, v1alpha2.File{Path: path, ConfigMapRef: &v1alpha2.FileReference{Name: "snippets", Key: "a"}})
		}
		s.Files = append(s.Files, v1alpha2.File{Path: "htpasswd", SecretRef: &v1alpha2.FileReference{Name: "readers", Key: "b"}})
	}
}

// Files with other paths or other content have another copy; the order of the list is nothing.
func TestCopyOfFiles(t *testing.T) {
	found := newDeclaredFiles(map[string][]byte{"a/b.conf": []byte("one"), "c.mmdb": {0xff, 0}})
	if diff := cmp.Diff(map[string]string{"a..b.conf": "one"}, found.text); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]byte{"c.mmdb": {0xff, 0}}, found.binary); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string]map[string][]byte{
		"path": {"a/c.conf": []byte("one"), "c.mmdb": {0xff, 0}}, "content": {"a/b.conf": []byte("two"), "c.mmdb": {0xff, 0}},
		"files": {"a/b.conf": []byte("one")},
	} {
		if newDeclaredFiles(other).hash == found.hash {
			t.Errorf("another %s has the same copy", name)
		}
	}
	in := inputs{files: &content{hash: "abc"}, secrets: "def"}
	template := func(paths ...string) corev1.PodTemplateSpec {
		return desiredDeployment(newObject(withFiles(paths...)), in).Spec.Template
	}
	if diff := cmp.Diff(template("a", "b"), template("b", "a")); diff != "" {
		t.Errorf("another order makes other Pods:\n%s", diff)
	}
}

// What a revision keeps of files restores them, and an object without files has the revision that it had.
func TestRevisionOfFiles(t *testing.T) {
	object := newObject(withFiles("a.conf"))
	in := inputs{image: testImage, config: configuration{hash: "abc"}, files: &content{hash: "def"}, secrets: "ghi"}
	want := files{FileText: map[string]string{"a.conf": "# one"}, FileBinary: map[string][]byte{"b": {0xff}}}
	kept := encodeAndDecode(t, revisionOf(object, in), want)
	restored, found := kept.restore(newObject())
	if diff := cmp.Diff(desired(object, in), desired(restored, found)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
	if again := revisionFor(t, restored, found); again.Name != revisionFor(t, object, in).Name {
		t.Errorf("the restored declaration has another name: %s", again.Name)
	}
	got, err := kept.unpack()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	bare, err := revisionOf(newObject(), inputs{image: testImage}).encode(files{})
	if err != nil || strings.Contains(string(bare), "filesHash") || strings.Contains(string(bare), "secretsHash") {
		t.Errorf("%v: %s", err, bare)
	}
}

// Of a Pod that mounts files of Secrets, no word is told that could come from one.
func TestNoWordOfASecretIsTold(t *testing.T) {
	const elsewhere = "(what nginx says may quote a file of a Secret, so only the log of the Pod has it)"
	for log, want := range map[string]string{
		`[emerg] 1#1: unknown directive "hunter2" in /etc/nginx/files/a.conf:3`: "nginx refuses its configuration: " + elsewhere +
			" in /etc/nginx/files/a.conf:3",
		"[emerg] 1#1: unknown directive \"hunter2\nmore\" in /etc/nginx/files/a.conf:3": "nginx refuses its configuration: " + elsewhere,
		`[emerg] 1#1: invalid value "a" in /etc/nginx-operator/servers.conf:3`:          `nginx refuses spec.config, line 3: invalid value "a"`,
		`[emerg] 1#1: bind() to hunter2:80 failed (13: Permission denied)`: `container "nginx" keeps crashing with exit code 1 (Error): ` +
			"[emerg] bind() " + elsewhere,
		`hunter2`: `container "nginx" keeps crashing with exit code 1 (Error): ` + elsewhere,
		``:        `container "nginx" keeps crashing with exit code 1 (Error)`,
	} {
		t.Run(log, func(t *testing.T) {
			message := log
			if strings.HasPrefix(log, "[") {
				message = "2026/01/01 00:00:00 " + log
			}
			pod := newPod(corev1.ContainerStatus{RestartCount: 2, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 1, Reason: "Error", Message: message,
			}}})
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, wellknown.AnnotationFiles, "")
			if got := podFailure(pod); got == nil || got.message != want {
				t.Errorf("told %+v, want %s", got, want)
			}
		})
	}
}

// Objects are found by what their files name.
func TestFilesAreIndexed(t *testing.T) {
	spec := &newObject(withFiles("a", "b")).Spec
	if got := slices.Concat(namedConfigMaps(spec), namedSecrets(spec)); !slices.Equal(got, []string{"snippets", "snippets", "readers"}) {
		t.Error(got)
	}
}

// An object without files and without a cache has no volume of either, and the dry run of one with files needs no copy.
func TestVolumesOfFiles(t *testing.T) {
	volumes := func(object *v1alpha2.NginxOperator, in inputs) map[string]corev1.Volume {
		out := map[string]corev1.Volume{}
		for _, volume := range desiredDeployment(object, in).Spec.Template.Spec.Volumes {
			out[volume.Name] = volume
		}
		return out
	}
	if got := slices.Sorted(maps.Keys(volumes(newObject(), inputs{}))); !slices.Equal(got, []string{"config", "tmp"}) {
		t.Errorf("volumes %v", got)
	}
	sources := volumes(newObject(withFiles("a")), inputs{})["files"].Projected.Sources
	if len(sources) != 1 || sources[0].Secret == nil {
		t.Errorf("sources %+v", sources)
	}
}

// What stands for a key of a Secret cannot be guessed without the Secret, and says nothing of its other keys.
func TestKeysOfSecrets(t *testing.T) {
	secret := func(uid types.UID, kind corev1.SecretType, text string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: uid}, Type: kind, Data: map[string][]byte{"a": []byte(text), "b": []byte(uid)}}
	}
	one := keyedIn(secret("u-1", corev1.SecretTypeOpaque, "one"), "a")
	if !one.found || one.refused != "" {
		t.Errorf("%+v", one)
	}
	for name, other := range map[string]*corev1.Secret{
		"content": secret("u-1", corev1.SecretTypeOpaque, "two"), "Secret": secret("u-2", corev1.SecretTypeOpaque, "one"),
	} {
		if keyedIn(other, "a").digest == one.digest {
			t.Errorf("another %s has the same digest", name)
		}
	}
	if got := keyedIn(secret("u-1", corev1.SecretTypeTLS, "one"), "a"); got != one {
		t.Errorf("%+v, want %+v", got, one)
	}
	if keyedIn(secret("u-1", corev1.SecretTypeOpaque, "one"), "c").found {
		t.Error("a key that is not there is found")
	}
	if got := keyedIn(secret("u-1", corev1.SecretTypeServiceAccountToken, "one"), "a"); got.refused == "" || got.digest != "" {
		t.Errorf("%+v", got)
	}
}
