package images

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBuildArguments(t *testing.T) {
	got, err := Build{
		Names: []string{"ghcr.io/example/a:v1", "busybox"}, Dockerfile: "d/Dockerfile", Context: "d", Args: []string{"A=1"},
		Timestamp: "1795429755",
	}.arguments()
	want := []string{
		"--quiet", "--http-proxy=false", "--file", "d/Dockerfile", "--tag", "ghcr.io/example/a:v1", "--tag", "docker.io/library/busybox:latest",
		"--build-arg", "A=1", "--timestamp", "1795429755", "d",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	got, err = Build{Names: []string{"a:v1"}, Dockerfile: "Dockerfile", Context: "."}.arguments()
	want = []string{"--quiet", "--http-proxy=false", "--file", "Dockerfile", "--tag", "docker.io/library/a:v1", "."}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := (Build{Names: []string{"ghcr.io//x"}}).arguments(); err == nil {
		t.Error("an image without a valid name is built")
	}
}
