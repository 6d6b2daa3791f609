package images

import "testing"

func TestListedDigest(t *testing.T) {
	output := `REF                  TYPE                                       DIGEST     SIZE  PLATFORMS   LABELS
ghcr.io/example/a:v1 application/vnd.oci.image.manifest.v1+json sha256:one 1 MiB linux/amd64 -
ghcr.io/example/b:v1 application/vnd.oci.image.manifest.v1+json sha256:two 1 MiB linux/amd64 -
`
	for name, want := range map[string]string{
		"ghcr.io/example/a:v1": "sha256:one", "ghcr.io/example/b:v1": "sha256:two", "ghcr.io/example/c:v1": "",
	} {
		if got := listedDigest(output, name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
