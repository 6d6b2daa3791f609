package integration

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/test/harness"
)

// refusal is an invalid spec, and the field and the reason of the API server's error.
type refusal struct {
	spec, field string
	reason      metav1.CauseType
}

const (
	invalid     = metav1.CauseTypeFieldValueInvalid
	required    = metav1.CauseTypeFieldValueRequired
	duplicate   = metav1.CauseTypeFieldValueDuplicate
	unsupported = metav1.CauseTypeFieldValueNotSupported
	tooMany     = metav1.CauseTypeTooMany
	tooLong     = metav1.CauseTypeTooLong
	wrongType   = metav1.CauseTypeTypeInvalid
	// unknown is the reason of a field that the schema does not have. The API server has no cause
	// for it.
	unknown = metav1.CauseType("unknown field")
)

// TestAdmissionRefuses verifies that the schema, one of its rules, or the webhook rejects an
// invalid object before it is stored, with an error for the field. The operator's messages are in
// testdata/refusals.txt, which -update writes.
func TestAdmissionRefuses(t *testing.T) {
	t.Parallel()
	namespace, messages := newNamespace(t), map[string]string{}
	for _, group := range []struct {
		version  string
		refusals map[string]refusal
		// own is true if the messages are the operator's.
		own bool
	}{
		{v1alpha2.GroupVersion.Version, refusedBySchema, false},
		{v1alpha2.GroupVersion.Version, refusedByRules, true},
		{v1alpha2.GroupVersion.Version, refusedByWebhook, true},
		{v1alpha2.GroupVersion.Version, refusedByDryRun, false},
		{v1alpha1.GroupVersion.Version, refusedAtV1alpha1, false},
	} {
		for title, test := range group.refusals {
			t.Run(group.version+" "+title, func(t *testing.T) {
				object := specManifest(t, group.version, namespace, "web", test.spec)
				message, err := test.messageOf(client.WithFieldValidation(suite.admin, "Strict").Create(t.Context(), object))
				if err != nil {
					t.Errorf("want %s for %s: %v", test.reason, test.field, err)
				}
				if group.own {
					messages[title] = message
				}
			})
		}
	}
	if len(messages) == len(refusedByRules)+len(refusedByWebhook) { // otherwise -run has selected some of them
		requireMessages(t, "refusals.txt", messages)
	}
}

// messageOf returns the messages of the API server's error for the field and the reason. It returns
// an error if there is none.
func (r refusal) messageOf(refused error) (string, error) {
	var status apierrors.APIStatus
	switch {
	case r.reason == unknown && apierrors.IsBadRequest(refused) && strings.Contains(refused.Error(), fmt.Sprintf("%q", r.field)):
		return refused.Error(), nil
	case !errors.As(refused, &status) || status.Status().Details == nil:
		return "", fmt.Errorf("it is answered with: %w", refused)
	}
	var out []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field == r.field && cause.Type == r.reason {
			out = append(out, cause.Field+": "+cause.Message)
		}
	}
	if len(out) == 0 {
		return "", fmt.Errorf("it is refused for other reasons: %w", refused)
	}
	return strings.Join(out, "\n    "), nil
}

// requireMessages compares messages with a file of testdata. An older API server shows the invalid
// values in another form.
func requireMessages(t *testing.T, name string, messages map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, title := range slices.Sorted(maps.Keys(messages)) {
		fmt.Fprintf(&text, "%s\n    %s\n\n", title, messages[title])
	}
	if !harness.OnOlderAPIServer() {
		fixture.Golden(t, name, text.String())
		return
	}
	want := string(must1(os.ReadFile(filepath.Join("testdata", name)))(t))
	if diff := cmp.Diff(harness.WithoutValues(want), harness.WithoutValues(text.String())); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// refused requires that the API server rejects an object with this message.
func refused(t *testing.T, namespace, version, spec, want string) {
	t.Helper()
	err := client.WithFieldValidation(suite.admin, "Strict").Create(t.Context(), specManifest(t, version, namespace, "web", spec))
	if !harness.Says(err, want) {
		t.Errorf("want a refusal with\n%s\ngot\n%v", want, err)
	}
}
