package validation

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// assetVolumes is the number of volumes of the Deployment before the volumes of the spec.
const assetVolumes = 2

// elementOfPods matches fields of elements in the Pod template's lists that include elements of the
// spec.
var elementOfPods = regexp.MustCompile(`^spec\.template\.spec\.(volumes|initContainers)\[(\d{1,3})\](.*)$`)

// originOfElement returns the field of the spec that a field of a list element comes from. The
// index in the Pod template differs from the index in the spec.
func originOfElement(child string, spec *v1alpha2.NginxOperatorSpec) (string, bool) {
	found := elementOfPods.FindStringSubmatch(child)
	if found == nil {
		return "", false
	}

	list, rest := found[1], found[3]
	place, err := strconv.Atoi(found[2])
	if err != nil || spec == nil {
		return "", false
	}

	last := len(spec.Volumes)
	switch {
	case list == "volumes":
		place -= assetVolumes
	case place < len(spec.InitContainers):
		last = len(spec.InitContainers)
	default:
		list, last, place = "sidecars", len(spec.Sidecars), place-len(spec.InitContainers)
	}

	if place < 0 || place >= last {
		return "", false
	}
	return fmt.Sprintf("%s[%d]%s", list, place, rest), true
}
