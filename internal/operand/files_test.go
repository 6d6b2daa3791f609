package operand

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
)

// TestCopyOfFiles verifies that files with other paths or content have another copy. The order of
// the list does not matter.
func TestCopyOfFiles(t *testing.T) {
	found := NewDeclaredFiles(map[string][]byte{"a/b.conf": []byte("one"), "c.mmdb": {0xff, 0}})
	if diff := cmp.Diff(map[string]string{"a..b.conf": "one"}, found.Text); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string][]byte{"c.mmdb": {0xff, 0}}, found.Binary); diff != "" {
		t.Error(diff)
	}
	for name, other := range map[string]map[string][]byte{
		"path": {"a/c.conf": []byte("one"), "c.mmdb": {0xff, 0}}, "content": {"a/b.conf": []byte("two"), "c.mmdb": {0xff, 0}},
		"files": {"a/b.conf": []byte("one")},
	} {
		if NewDeclaredFiles(other).Hash == found.Hash {
			t.Errorf("another %s has the same copy", name)
		}
	}
	in := Inputs{Files: &Content{Hash: "abc"}, SecretsHash: "def"}
	template := func(paths ...string) corev1.PodTemplateSpec {
		return DesiredDeployment(fixture.NewObject(fixture.WithFiles(paths...)), in).Spec.Template
	}
	if diff := cmp.Diff(template("a", "b"), template("b", "a")); diff != "" {
		t.Errorf("another order makes other Pods:\n%s", diff)
	}
}

// TestVolumesOfFiles verifies that an object without files and cache has no volumes for them. The
// dry run of an object with files needs no copy.
func TestVolumesOfFiles(t *testing.T) {
	volumes := func(object *v1alpha2.NginxOperator, in Inputs) map[string]corev1.Volume {
		out := map[string]corev1.Volume{}
		for _, volume := range DesiredDeployment(object, in).Spec.Template.Spec.Volumes {
			out[volume.Name] = volume
		}
		return out
	}
	if got := slices.Sorted(maps.Keys(volumes(fixture.NewObject(), Inputs{}))); !slices.Equal(got, []string{"config", "tmp"}) {
		t.Errorf("volumes %v", got)
	}
	sources := volumes(fixture.NewObject(fixture.WithFiles("a")), Inputs{})["files"].Projected.Sources
	if len(sources) != 1 || sources[0].Secret == nil {
		t.Errorf("sources %+v", sources)
	}
}

// TestDirectories verifies that each mask has a ConfigMap of its own, which is mounted as a whole: the
// Pod template has the same size for any number of keys, and the order of the list does not matter.
func TestDirectories(t *testing.T) {
	source := func(keys int) *corev1.ConfigMap {
		out := &corev1.ConfigMap{BinaryData: map[string][]byte{"a.bin": {0xff}}, Data: map[string]string{"notes.txt": ""}}
		for i := range keys {
			out.Data[fmt.Sprintf("%03d.bin", i)] = "text"
		}
		return out
	}
	file := func(path string) v1alpha2.File {
		return v1alpha2.File{Path: path, ConfigMapRef: &v1alpha2.FileReference{Name: "a", Key: "*.bin"}}
	}
	deployed := func(keys int, paths ...string) (in Inputs, template corev1.PodTemplateSpec, names []string) {
		object := fixture.NewObject()
		for _, path := range paths {
			object.Spec.Files = append(object.Spec.Files, file(path))
			in.Directories = append(in.Directories, NewDirectory(file(path), source(keys)))
		}
		for _, child := range Desired(object, in) {
			if configMap, ok := child.(*corev1.ConfigMap); ok {
				names = append(names, configMap.Name)
			}
		}
		return in, DesiredDeployment(object, in).Spec.Template, names
	}

	in, one, names := deployed(1, "sites/b", "a")
	if got := in.Directories[0]; len(got.Text) != 1 || len(got.Binary) != 1 || got.Hash == in.Directories[1].Hash {
		t.Errorf("directories %+v", in.Directories)
	}
	if slices.Sort(names); len(slices.Compact(names)) != 3 {
		t.Errorf("ConfigMaps %v", names)
	}
	var mounts []string
	for _, mount := range one.Spec.Containers[0].VolumeMounts[2:] {
		mounts = append(mounts, mount.MountPath)
	}
	if diff := cmp.Diff([]string{"/etc/nginx/files/a", "/etc/nginx/files/sites/b"}, mounts); diff != "" {
		t.Error(diff)
	}

	_, many, _ := deployed(255, "sites/b", "a")
	_, reordered, _ := deployed(1, "a", "sites/b")
	if one.Size() != many.Size() || !cmp.Equal(one, reordered) {
		t.Errorf("%d bytes with one key, %d with 255; another order makes other Pods: %t", one.Size(), many.Size(), !cmp.Equal(one, reordered))
	}
}

// TestDigest verifies that each change of a Secret changes the digest, including a text that moves
// to another key.
func TestDigest(t *testing.T) {
	seen := map[string]bool{}
	for _, files := range []map[string]string{{}, {"a": ""}, {"a": "b"}, {"ab": ""}, {"a": "b", "c": ""}, {"a": "bc"}, {"a": " ", "b": ""}} {
		if seen[Digest(files)] {
			t.Errorf("%v has the digest of another", files)
		}
		seen[Digest(files)] = true
	}
}
