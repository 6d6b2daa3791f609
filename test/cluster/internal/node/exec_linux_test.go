package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeEnv(t *testing.T) {
	got := mergeEnv(
		[]string{"PATH=/bin", "HOME=/root", "https_proxy=http://proxy", "NO_PROXY=x", "EMPTY="},
		[]string{"PATH=/own:/bin", "KUBECONFIG=/k"})
	want := []string{"HOME=/root", "EMPTY=", "PATH=/own:/bin", "KUBECONFIG=/k"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
