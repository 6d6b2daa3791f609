package main

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// movingTag is the tag of the catalog that clusters poll. A cluster that polls it upgrades after it
// has moved, so it moves last: after a maintainer has published the page of the release.
const movingTag = "latest"

// moveLatest moves the tag to the catalog of this release. The tag never moves back: clusters would
// lose the releases that they run.
func (p *project) moveLatest() error {
	if p.digests {
		return errors.New("USE_IMAGE_DIGESTS=true does not apply to a tag that moves")
	}
	if len(p.older) > 0 {
		newest := p.older[len(p.older)-1]
		if version.MustParseSemantic(p.version).LessThan(version.MustParseSemantic(newest)) {
			return fmt.Errorf("the catalog has release %s, which is newer than %s: the tag %s belongs to the newest release",
				newest, p.version, movingTag)
		}
	}
	return execute(p.inRegistry("tag", []string{p.image("catalog", p.version), movingTag}))
}
