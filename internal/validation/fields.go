package validation

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const exampleImage = "docker.io/nginxinc/nginx-unprivileged:1.30.7"

func validateImage(image string, path *field.Path) field.ErrorList {
	if image == "" {
		return nil
	}
	if _, err := reference.ParseNormalizedNamed(image); err != nil {
		return field.ErrorList{field.Invalid(path, image, fmt.Sprintf("%v; write for example %s", err, exampleImage))}
	}
	return nil
}

func validateName(name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

// validateNoMask rejects a mask. The schema already has the rule of a later release, because no
// release after 0.7.1 can change a rule (docs/adr/0052-rules-are-frozen.md).
func validateNoMask(key string, path *field.Path) field.ErrorList {
	if !IsMask(key) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, bounded(key),
		"has a *, which this release does not support; write one key, for example nginx.conf")}
}

// IsMask reports whether a key is a mask, which matches several keys. This release refuses masks.
func IsMask(key string) bool { return strings.Contains(key, "*") }

// maxErrors is the maximum number of returned errors. Kubernetes joins errors in quadratic time.
const maxErrors = 32

func firstOf(errs field.ErrorList, path *field.Path) field.ErrorList {
	more := len(errs) - maxErrors
	if more <= 0 {
		return errs
	}
	return append(errs[:maxErrors:maxErrors], field.Forbidden(path, fmt.Sprintf("and %d more errors; correct these first", more)))
}

// maxVerdict is the maximum size in bytes of a field, and of a message, that can repeat the user's
// text.
const maxVerdict = 512

// bounded shortens a text to maxVerdict bytes, at the end of a character.
func bounded(text string) string {
	if len(text) <= maxVerdict {
		return text
	}
	return strings.ToValidUTF8(text[:maxVerdict], "") + "…"
}
