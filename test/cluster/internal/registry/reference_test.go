package registry

import "testing"

func TestParse(t *testing.T) {
	for name, want := range map[string][2]string{
		"busybox":                {"docker.io/library/busybox:latest", "192.0.2.1:5000/docker.io/library/busybox:latest"},
		"me/app:v1":              {"docker.io/me/app:v1", "192.0.2.1:5000/docker.io/me/app:v1"},
		"docker.io/me/app:v1":    {"docker.io/me/app:v1", "192.0.2.1:5000/docker.io/me/app:v1"},
		"ghcr.io/example/a:v0.1": {"ghcr.io/example/a:v0.1", "192.0.2.1:5000/ghcr.io/example/a:v0.1"},
		"localhost:5001/app":     {"localhost:5001/app:latest", "192.0.2.1:5000/localhost:5001/app:latest"},
		"192.0.2.1:5000/ghcr.io/example/a:v1": {
			"192.0.2.1:5000/ghcr.io/example/a:v1", "192.0.2.1:5000/ghcr.io/example/a:v1",
		},
	} {
		ref, err := Parse(name)
		if err != nil || ref.String() != want[0] || ref.InCluster() != want[1] {
			t.Errorf("%s: got %s, %s, %v", name, ref, ref.InCluster(), err)
		}
	}
	for _, name := range []string{"", "Upper/case", "ghcr.io/x@sha256:0123", "ghcr.io/x:bad tag"} {
		if ref, err := Parse(name); err == nil {
			t.Errorf("%q is not a name, but was read as %s", name, ref)
		}
	}
}
