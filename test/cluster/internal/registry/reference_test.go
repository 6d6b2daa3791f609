package registry

import "testing"

func TestParse(t *testing.T) {
	for _, test := range []struct {
		name, full, inCluster, path string
	}{
		{"busybox", "docker.io/library/busybox:latest", "192.0.2.1:5000/docker.io/library/busybox:latest", "docker.io/library/busybox"},
		{"busybox:1.36", "docker.io/library/busybox:1.36", "192.0.2.1:5000/docker.io/library/busybox:1.36", "docker.io/library/busybox"},
		{"me/app:v1", "docker.io/me/app:v1", "192.0.2.1:5000/docker.io/me/app:v1", "docker.io/me/app"},
		{
			"docker.io/nginxinc/nginx-unprivileged:1.28.0", "docker.io/nginxinc/nginx-unprivileged:1.28.0",
			"192.0.2.1:5000/docker.io/nginxinc/nginx-unprivileged:1.28.0", "docker.io/nginxinc/nginx-unprivileged",
		},
		{
			"ghcr.io/example/nginx-operator:v0.1.0", "ghcr.io/example/nginx-operator:v0.1.0",
			"192.0.2.1:5000/ghcr.io/example/nginx-operator:v0.1.0", "ghcr.io/example/nginx-operator",
		},
		{"localhost:5001/app", "localhost:5001/app:latest", "192.0.2.1:5000/localhost:5001/app:latest", "localhost:5001/app"},
		{
			"192.0.2.1:5000/ghcr.io/example/app:v1", "192.0.2.1:5000/ghcr.io/example/app:v1",
			"192.0.2.1:5000/ghcr.io/example/app:v1", "ghcr.io/example/app",
		},
	} {
		ref, err := Parse(test.name)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if ref.String() != test.full || ref.InCluster() != test.inCluster || ref.Path() != test.path {
			t.Errorf("%s: got %s, %s, %s", test.name, ref, ref.InCluster(), ref.Path())
		}
	}
	for _, name := range []string{
		"", ":", "app:", "Upper/case", "ghcr.io/x@sha256:0123", "ghcr.io//x", "ghcr.io/x:bad tag", "-flag", "ghcr.io/../x", "ghcr.io/x:-t",
	} {
		if ref, err := Parse(name); err == nil {
			t.Errorf("%q is not a name, but was read as %s", name, ref)
		}
	}
}
