package migrate

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// deployment returns a Deployment with fields of the Pod and its nginx container, in YAML's flow style.
func deployment(pod, nginx string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    spec: {" + pod +
		"containers: [{name: nginx, " + nginx + "}]}\n"
}

const unprivileged = "image: docker.io/nginxinc/nginx-unprivileged:1.30.7"

// TestUsers verifies that an image that runs as root is listed with the remedy, because the kubelet
// does not start it in the operator's Pods. An image with an unknown user is listed, unless the
// source proves that it has one, and a container that gets the user of the nginx container.
func TestUsers(t *testing.T) {
	const (
		root = "runs as root, and the operator's Pods do not start with such an image (runAsNonRoot), unless the cluster sets a user, as " +
			"OpenShift does; set spec.securityContext.runAsUser to 101, the user nginx of the image, or use " +
			"docker.io/nginxinc/nginx-unprivileged"
		unknown = "the operator's Pods do not start with an image that runs as root (runAsNonRoot). If the USER of an image is not the number " +
			"of another user, set spec.securityContext.runAsUser"
		official = "docker.io/library/nginx:1.30"
		others   = "spec.initContainers[0].image (example.com/a:1), spec.sidecars[0].image (example.com/b): " + unknown
		sidecar  = "initContainers: [{name: b, image: example.com/a:1}, {name: c, restartPolicy: Always, image: example.com/b}], "
		known    = "spec.initContainers[0].image: alpine/git runs as root, and the operator's Pods do not start with such an image " +
			"(runAsNonRoot), unless the cluster sets a user, as OpenShift does; set spec.securityContext.runAsUser, for example to 101"
	)
	const user = "securityContext: {runAsUser: 101}, "
	const ids = "initContainers: [{name: a, " + unprivileged + "}, {name: b, " + user + unprivileged + "}], "
	const other = "initContainers[0]: it gets runAsUser 101 of the nginx container, because"
	for name, test := range map[string]struct{ pod, nginx, want string }{
		"the user of nginx":                  {ids, user + unprivileged, other},
		"another user of nginx":              {"securityContext: {runAsUser: 7}, " + ids, user + unprivileged, other},
		"the same user of nginx":             {user + ids, user + unprivileged, ""},
		"the user of all":                    {user + ids, unprivileged, ""},
		"the official image":                 {"", "image: docker.io/library/nginx:1.30", "spec.image: " + official + " " + root + ":1.30"},
		"with other containers":              {sidecar, "image: nginx:1.30", ":1.30\n" + others},
		"its short name":                     {"", "image: nginx", "spec.image: nginx " + root},
		"its digest":                         {"", "image: 'nginx@sha256:" + strings.Repeat("a", 64) + "'", root},
		"with a user":                        {"securityContext: {runAsUser: 101}, ", "image: nginx:1.30", ""},
		"with a user of the container":       {"", "image: nginx:1.30, securityContext: {runAsUser: 101}", ""},
		"with root":                          {"securityContext: {runAsUser: 0}, ", "image: nginx:1.30", root},
		"the unprivileged image":             {"", unprivileged, ""},
		"another image":                      {"", "image: example.com/nginx:1", "spec.image (example.com/nginx:1): " + unknown},
		"another image that is not root":     {"", "image: example.com/nginx:1, securityContext: {runAsNonRoot: true}", ""},
		"other containers":                   {sidecar, unprivileged, others},
		"other containers that are not root": {"securityContext: {runAsNonRoot: true}, " + sidecar, unprivileged, ""},
		"other containers with a user":       {"securityContext: {runAsUser: 7}, " + sidecar, unprivileged, ""},
		"another container of root":          {"initContainers: [{name: b, image: alpine/git}], ", unprivileged, known},
		"a container that is not root": {
			"initContainers: [{name: b, image: example.com/a, securityContext: {runAsNonRoot: true}}], ", unprivileged, "",
		},
		"a container that can be root": {
			"securityContext: {runAsNonRoot: true}, initContainers: [{name: b, image: example.com/a, securityContext: {runAsNonRoot: false}}], ",
			unprivileged, "spec.initContainers[0].image (example.com/a): " + unknown,
		},
		"a container with a user of its own": {
			"securityContext: {runAsNonRoot: true}, initContainers: [{name: b, image: example.com/a, securityContext: {runAsUser: 7}}], ",
			unprivileged, "spec.initContainers[0].image (example.com/a): " + unknown,
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := strings.Join(only(t, deployment(test.pod, test.nginx)).Check, "\n")
			problems := strings.Count(said, "runAsNonRoot") + strings.Count(said, "it gets ")
			if !strings.Contains(said, test.want) || (problems > 0) != (test.want != "") {
				t.Errorf("want %q in:\n%s", test.want, said)
			}
		})
	}
}

// TestSecurityContext verifies that IDs are converted, and what restricted forbids is listed.
func TestSecurityContext(t *testing.T) {
	result := only(t, deployment("securityContext: {runAsUser: 0, runAsGroup: 5, fsGroup: 6, fsGroupChangePolicy: OnRootMismatch, "+
		"supplementalGroups: [7], runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}, sysctls: [{name: a, value: b}]}, "+
		"initContainers: [{name: i, "+unprivileged+", securityContext: {runAsUser: 9, runAsGroup: 8, privileged: true}}], ",
		unprivileged+", securityContext: {runAsUser: 101, runAsGroup: 8, allowPrivilegeEscalation: false, privileged: false, "+
			"readOnlyRootFilesystem: true, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"))
	want := &v1alpha2.PodSecurityContext{
		RunAsUser: ptr.To[int64](101), RunAsGroup: ptr.To[int64](8), FSGroup: ptr.To[int64](6), FSGroupChangePolicy: "OnRootMismatch",
		SupplementalGroups: []int64{7},
	}
	if diff := cmp.Diff(want, result.Object.Spec.SecurityContext); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	const (
		at      = "Deployment a.spec.template.spec."
		ofNginx = "all containers have the security context of nginx; see spec.securityContext and spec.patches"
	)
	wantLost := []string{
		at + "securityContext.runAsUser: nginx must not run as root; set another user in spec.securityContext.runAsUser",
		at + "securityContext.sysctls: " + restricted,
		at + "initContainers[0].securityContext.privileged: " + ofNginx,
		at + "initContainers[0].securityContext.runAsUser: " + ofNginx,
	}
	if diff := cmp.Diff(wantLost, result.Lost); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
