package operand

import (
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
