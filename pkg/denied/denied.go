// Package denied recognizes requests that admission has denied. A webhook or a policy chooses the
// code and the reason of its denial, so only the message distinguishes a denial from an error of
// the API server: a conflict, a missing object, or an invalid field. See
// docs/adr/0040-admission-is-nobodys-deputy.md.
package denied

import (
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

var (
	// byWebhook matches the message of a denial by an admission webhook. Its default code is 400.
	byWebhook = regexp.MustCompile(`^admission webhook "([^"]+)" denied the request`)
	// byPolicy matches the message of a denial by an admission policy. Its default reason is
	// Invalid (422).
	byPolicy = regexp.MustCompile(
		`^[a-z0-9./-]+ "[^"]*" is forbidden: ((?:Validating|Mutating)AdmissionPolicy '[^']+' with binding '[^']+') denied request`)
)

// By returns the admission webhook or policy that denied a request, or "".
func By(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}

	message := status.Status().Message
	if found := byWebhook.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("admission webhook %q", found[1])
	}
	if found := byPolicy.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// Is reports whether admission denied a request.
func Is(err error) bool { return By(err) != "" }
