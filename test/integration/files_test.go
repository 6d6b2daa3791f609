package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// includes is a configuration that includes a file of spec.files.
const includes = "server {\n    listen 8080;\n    include /etc/nginx/files/snippets/a.conf;\n}\n"

// namesFile makes a spec reference the key "a" of the ConfigMap "named".
func namesFile(s *v1alpha2.NginxOperatorSpec) {
	s.Config = &v1alpha2.Config{Inline: includes}
	s.Files = []v1alpha2.File{{Path: "snippets/a.conf", ConfigMapRef: &v1alpha2.FileReference{Name: "named", Key: "a"}}}
}

// namesSecretFile makes a spec reference the key "a" of the Secret "named".
func namesSecretFile(s *v1alpha2.NginxOperatorSpec) {
	namesFile(s)
	s.Files[0].ConfigMapRef, s.Files[0].SecretRef = nil, &v1alpha2.ObjectKeyReference{Name: "named", Key: "a"}
}

// mountedFile returns the content of /etc/nginx/files/snippets/a.conf in the Pods if a ConfigMap
// provides it.
func mountedFile(c children) string {
	for _, volume := range podOf(c).Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			for _, configMap := range c.configMaps {
				if source.ConfigMap != nil && source.ConfigMap.Name == configMap.Name {
					return configMap.Data[source.ConfigMap.Items[0].Key]
				}
			}
		}
	}
	return ""
}

// waitForMountedFile waits until new Pods mount this content.
func waitForMountedFile(t *testing.T, namespace, want string) children {
	t.Helper()
	var out children
	waitFor(t, func() (err error) {
		if out, err = childrenOf(t.Context(), namespace, "web"); err != nil {
			return err
		}
		if out.deployment == nil || mountedFile(out) != want {
			return errors.New("another text is mounted")
		}
		return nil
	})
	return out
}

// TestFilesOfSecrets verifies that the Pods mount a key of a Secret directly. New content of the
// key triggers a rollout. A change to another key of the same Secret does not. Without the key,
// changes are blocked. The operator writes the content to no other object.
func TestFilesOfSecrets(t *testing.T) {
	t.Parallel()
	const hidden = "proxy_set_header Authorization hunter2;"
	namespace := newNamespace(t)
	createWeb(t, namespace, namesSecretFile)
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `spec.files[0].secretRef.name: Secret "named" not found`)
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "named"}, Data: map[string][]byte{"b": []byte("other")},
	}
	create(t, source)
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `spec.files[0].secretRef.key: Secret "named" has no key "a"`)
	update(t, source, func(s *corev1.Secret) { s.Data["a"] = []byte(hidden) })
	first := waitForChildren(t, namespace, "web")
	waitForNoBlocker(t, namespace)
	digest := func(c children) string { return c.deployment.Spec.Template.Annotations[wellknown.AnnotationFiles] }

	update(t, source, func(s *corev1.Secret) { s.Data["b"] = []byte("changed") })
	waitForMarker(t, namespace)
	waitForGeneration(t, namespace, first.deployment.Generation)
	update(t, source, func(s *corev1.Secret) { s.Data["a"] = []byte(hidden + "\n") })
	second := waitForGeneration(t, namespace, first.deployment.Generation+1)
	if digest(second) == digest(first) || digest(first) == "" {
		t.Errorf("digest %q, was %q", digest(second), digest(first))
	}
	update(t, source, func(s *corev1.Secret) { delete(s.Data, "a") })
	waitForBlocker(t, namespace, v1alpha2.ReasonReferenceNotFound, `spec.files[0].secretRef.key: Secret "named" has no key "a"`)
	waitForGeneration(t, namespace, second.deployment.Generation)

	rollOut(t, namespace, "web")
	revisions := must1(revisionsOf(t.Context(), namespace))(t)
	told := fmt.Sprint(second.all(), revisions, must1(waitForStatusOnce(t.Context(), namespace, "web"))(t))
	if strings.Contains(told, "hunter2") || len(revisions) == 0 {
		t.Errorf("what is in the Secret was written elsewhere (%d revisions)", len(revisions))
	}
}

// TestRollbackRestoresFiles verifies that the operator rolls back a file that fails the rollout.
// The Pods mount the last good content again, although the source ConfigMap has other content. If a
// user deletes the copy, the operator restores it.
func TestRollbackRestoresFiles(t *testing.T) {
	t.Parallel()
	const tooFast = "gzip_comp_level 99;\n"
	namespace := newNamespace(t)
	source := newConfigMap(namespace, "named", map[string]string{"a": "# one\n"})
	create(t, source)
	createWeb(t, namespace, namesFile)
	waitForMountedFile(t, namespace, "# one\n")
	makeReady(t, namespace, "web")

	update(t, source, func(c *corev1.ConfigMap) { c.Data["a"] = tooFast })
	waitForMountedFile(t, namespace, tooFast)
	newestFails(t, namespace, "2", crashingPod(
		"2026/01/01 00:00:00 [emerg] 7#7: value must be between 1 and 9 in /etc/nginx/files/snippets/a.conf:1"))
	degraded := waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	if !strings.Contains(degraded.Message, "value must be between 1 and 9 in /etc/nginx/files/snippets/a.conf:1") {
		t.Errorf("Degraded says %q", degraded.Message)
	}
	after := waitForMountedFile(t, namespace, "# one\n")
	left := 0
	for i := range after.configMaps {
		if after.configMaps[i].Data["snippets..a.conf"] != "" {
			left++
		}
	}
	if left != 2 {
		t.Errorf("%d copies; the revision that failed still mounts its own", left)
	}
	for i := range after.configMaps {
		if after.configMaps[i].Data["snippets..a.conf"] == "# one\n" {
			must(t, suite.admin.Delete(t.Context(), &after.configMaps[i]))
		}
	}
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		if text := fmt.Sprint(object.Status.BlockedBy); !strings.Contains(text, "of the running Pods was deleted") {
			return errors.New(text)
		}
		return nil
	})
	requireSamePods(t, after, must1(childrenOf(t.Context(), namespace, "web"))(t))

	update(t, source, func(c *corev1.ConfigMap) { c.Data["a"] = "gzip on;\n" })
	waitForMountedFile(t, namespace, "gzip on;\n")
	makeReady(t, namespace, "web")
}

// TestFilesAreBounded verifies that files that do not fit into one copy block the change, and that
// the operator applies files that just fit.
func TestFilesAreBounded(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	half := map[string]string{"a": strings.Repeat("#\n", 300<<10)}
	first, second := newConfigMap(namespace, "named", half), newConfigMap(namespace, "more", half)
	create(t, first)
	create(t, second)
	object := newInstance(namespace, "web")
	namesFile(&object.Spec)
	object.Spec.Files = append(object.Spec.Files, v1alpha2.File{
		Path: "more.conf", ConfigMapRef: &v1alpha2.FileReference{Name: "more", Key: "a"},
	})
	create(t, object)
	waitForBlocker(t, namespace, v1alpha2.ReasonInvalidReference, "spec.files: the keys of ConfigMaps have 1228800 bytes in total")
	update(t, second, func(c *corev1.ConfigMap) { c.Data["a"] = c.Data["a"][:400<<10] })
	waitForChildren(t, namespace, "web")
	waitForNoBlocker(t, namespace)
}

// TestCopyOfFilesIsRestored verifies that the operator corrects manual changes to the copy of files
// and to the volumes of files and the cache.
func TestCopyOfFilesIsRestored(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newConfigMap(namespace, "named", map[string]string{"a": "# one\n"}))
	object := newInstance(namespace, "web")
	namesFile(&object.Spec)
	object.Spec.Cache = &v1alpha2.Cache{Size: "64Mi", InMemory: true}
	create(t, object)
	before := waitForMountedFile(t, namespace, "# one\n")
	for i := range before.configMaps {
		if before.configMaps[i].Data["snippets..a.conf"] != "" {
			must(t, suite.admin.Delete(t.Context(), &before.configMaps[i]))
		}
	}
	waitForMountedFile(t, namespace, "# one\n")
	update(t, before.deployment.DeepCopy(), func(d *appsv1.Deployment) {
		for i := range d.Spec.Template.Spec.Volumes {
			switch volume := &d.Spec.Template.Spec.Volumes[i]; volume.Name {
			case "files":
				volume.Projected.Sources[0].ConfigMap.Items[0].Path = "elsewhere"
			case "cache":
				volume.EmptyDir.Medium = corev1.StorageMediumDefault
			}
		}
	})
	waitForWeb(t, namespace, func(got children) error {
		if diff := cmp.Diff(podOf(before).Volumes, podOf(got).Volumes); diff != "" {
			return fmt.Errorf("volumes (-before +after):\n%s", diff)
		}
		return nil
	})
}

// TestIncludedFileIsChecked verifies that the operator finds errors in an included file before the
// file reaches a Pod. The configuration is either inline or in a ConfigMap, and includes the file
// as directives or as entries of a map.
func TestIncludedFileIsChecked(t *testing.T) {
	t.Parallel()
	const ofDirectives, ofEntries = "\nlissten 1;\n", "\n~^/p/\\d{4}$ 1;\n"
	for name, test := range map[string]struct{ where, broken, message string }{
		"inline":    {"spec.config.inline: ", ofDirectives, `unknown directive "lissten"`},
		"ConfigMap": {`spec.config.configMapRef: ConfigMap "routes", key "nginx.conf": `, ofDirectives, `unknown directive "lissten"`},
		"map":       {"spec.config.inline: ", ofEntries, `unexpected "{" in the regular expression "~^/p/\d"`},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := newNamespace(t)
			source := newConfigMap(namespace, "named", map[string]string{"a": "# one\n"})
			create(t, source)
			create(t, newConfigMap(namespace, "routes", map[string]string{"nginx.conf": includes}))
			object := newInstance(namespace, "web")
			namesFile(&object.Spec)
			switch name {
			case "ConfigMap":
				object.Spec.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "routes"}}
			case "map":
				object.Spec.Config.Inline = "map $uri $page {\n    include /etc/nginx/files/snippets/a.conf;\n}\n" + servers
			}
			create(t, object)
			before := waitForMountedFile(t, namespace, "# one\n")
			update(t, source, func(c *corev1.ConfigMap) { c.Data["a"] = test.broken })
			waitForBlocker(t, namespace, v1alpha2.ReasonInvalidConfiguration,
				test.where+"/etc/nginx/files/snippets/a.conf, line 2: "+test.message)
			waitForGeneration(t, namespace, before.deployment.Generation)
			update(t, source, func(c *corev1.ConfigMap) { c.Data["a"] = "# two\n" })
			waitForMountedFile(t, namespace, "# two\n")
			waitForNoBlocker(t, namespace)
		})
	}
}
