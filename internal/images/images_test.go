package images

import (
	"strings"
	"testing"
)

func TestImages(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("a", 64)
	for image, want := range map[string]struct {
		repository, tag string
		isRoot          bool
	}{
		"":                                  {},
		"not an image":                      {},
		"nginx":                             {Nginx, "", true},
		"nginx:1.30":                        {Nginx, "1.30", true},
		"library/nginx:1.30" + digest:       {Nginx, "1.30", true},
		Nginx + digest:                      {Nginx, "", true},
		Unprivileged + ":1.30.7":            {Unprivileged, "1.30.7", false},
		"alpine/git":                        {"docker.io/alpine/git", "", true},
		"registry.example.com:5000/nginx:1": {"registry.example.com:5000/nginx", "1", false},
	} {
		repository, tag := Parse(image)
		if repository != want.repository || tag != want.tag || RunsAsRoot(image) != want.isRoot {
			t.Errorf("%q: repository %q, tag %q, root: %t, want %+v", image, repository, tag, RunsAsRoot(image), want)
		}
	}
}
