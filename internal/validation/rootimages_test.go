package validation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRootImages verifies that an image that is known to run as root causes a warning, unless a
// field or a patch sets the user.
func TestRootImages(t *testing.T) {
	const helpers = "initContainers: [{name: clone, image: 'docker.io/alpine/git:2.49.1'}, {name: same}]\n" +
		"sidecars: [{name: other, image: 'registry.example.com/busybox:1'}, {name: ship, image: 'busybox:1.36'}]\n"
	of := func(patch string) string {
		return helpers + "patches: [{target: {kind: Deployment}, patch: '" + patch + "'}]"
	}
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"nginx":              {"image: 'nginx:1.30.7'", []string{"spec.image: docker.io/library/nginx runs as root, "}},
		"unprivileged nginx": {"image: 'docker.io/nginxinc/nginx-unprivileged:1.30.7'", nil},
		"helpers": {helpers, []string{
			"spec.initContainers[0].image: docker.io/alpine/git runs as root, ", "spec.sidecars[1].image: docker.io/library/busybox runs as root, ",
		}},
		"user":          {helpers + "securityContext: {runAsUser: 101}", nil},
		"group":         {"image: 'nginx:1.30.7'\nsecurityContext: {runAsGroup: 101}", []string{"spec.image: "}},
		"patched user":  {of("spec: {template: {spec: {securityContext: {runAsUser: 101}}}}"), nil},
		"no image":      {"sidecars: [{name: a}]", nil},
		"another patch": {"image: 'nginx:1.30.7'\npatches: [{target: {kind: Service}, patch: runAsUser}]", []string{"spec.image: "}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Warnings(specOf(t, test.spec), nil)
			for i, warning := range got {
				if i < len(test.want) && strings.HasPrefix(warning, test.want[i]) && strings.Contains(warning, "spec.securityContext.runAsUser") {
					got[i] = test.want[i]
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
