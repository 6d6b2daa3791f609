package status

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/pkg/apply"
)

// TestApplyFailureOfTheSpec verifies that the API server's errors in a part of the Deployment that
// the spec sets are reported as errors of the spec.
func TestApplyFailureOfTheSpec(t *testing.T) {
	pod := field.NewPath("spec", "template", "spec")
	refused := func(errs ...*field.Error) error {
		kind := appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()
		return fmt.Errorf("failed to create Deployment: %w", apierrors.NewInvalid(kind, "web", errs))
	}
	own, operator := field.Required(pod.Child("volumes"), "lacks one"), pod.Child("tolerations").Index(0).Child("operator")
	for name, test := range map[string]struct {
		err  error
		want failure.Failure
	}{
		"the spec": {
			refused(field.Invalid(operator, "Is", "is none"), own, field.Required(pod.Child("nodeSelector"), "lacks one")),
			failure.Failure{
				Reason: v1alpha2.ReasonInvalidConfiguration,
				Message: `[spec.podTemplate.tolerations[0].operator: Invalid value: "Is": is none, ` +
					`spec.podTemplate.nodeSelector: Required value: lacks one]`,
			},
		},
		"the operator's part": {refused(own), failure.Failure{
			Reason:  v1alpha2.ReasonInvalidChild,
			Message: `failed to create Deployment: Deployment.apps "web" is invalid: spec.template.spec.volumes: Required value: lacks one`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(&test.want, WriteFailure(test.err, nil), cmp.AllowUnexported(failure.Failure{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNodePortThatIsTaken verifies that an allocated node port is a temporary failure, and that
// other errors in the spec are not.
func TestNodePortThatIsTaken(t *testing.T) {
	port := field.NewPath("spec", "ports").Index(0).Child("nodePort")
	taken := field.Invalid(port, 30080, "provided port is already allocated")
	for name, test := range map[string]struct {
		faults field.ErrorList
		passes bool
	}{
		"taken":                    {field.ErrorList{taken}, true},
		"two are taken":            {field.ErrorList{taken, taken}, true},
		"out of range":             {field.ErrorList{field.Invalid(port, 99, "provided port is not in the valid range")}, false},
		"taken, and another fault": {field.ErrorList{taken, field.Invalid(field.NewPath("spec", "ipFamilies"), "IPv6", "no")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", test.faults)
			found := WriteFailure(fmt.Errorf("failed to create Service: %w", err), &fixture.NewObject().Spec)
			if found == nil || found.Reason != v1alpha2.ReasonInvalidConfiguration || found.CanPass() != test.passes {
				t.Errorf("%+v, want one that can pass: %t", found, test.passes)
			}
		})
	}
}

// deniedAs returns the API server's error if admission denies a write. The webhook or policy
// chooses the message, the reason, and the code.
func deniedAs(message string, reason metav1.StatusReason, code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: message, Reason: reason, Code: code,
		Details: &metav1.StatusDetails{Name: "web", Kind: "deployments", Causes: []metav1.StatusCause{{Message: message}}},
	}}
}

// TestDenialsOfPolicies verifies that a denial by a policy is reported as such for every status
// code, and does not stop a fleet rollout.
func TestDenialsOfPolicies(t *testing.T) {
	const (
		webhook = `admission webhook "policy.example.com" denied the request: no root`
		policy  = `deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding 'shop' denied request: no root`
	)
	const theWebhook, thePolicy = `admission webhook "policy.example.com"`, "ValidatingAdmissionPolicy 'no-root' with binding 'shop'"
	for name, test := range map[string]struct {
		err    error
		remedy string
	}{
		"a webhook, no code":  {deniedAs(webhook, metav1.StatusReasonBadRequest, http.StatusBadRequest), theWebhook},
		"a webhook, refused":  {deniedAs(webhook, metav1.StatusReasonForbidden, http.StatusForbidden), theWebhook},
		"a webhook, invalid":  {deniedAs(webhook, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity), theWebhook},
		"a webhook, conflict": {deniedAs(webhook, metav1.StatusReasonConflict, http.StatusConflict), theWebhook},
		"a webhook, teapot":   {deniedAs(webhook, metav1.StatusReasonUnknown, http.StatusTeapot), theWebhook},
		"a policy":            {deniedAs(policy, metav1.StatusReasonInvalid, http.StatusUnprocessableEntity), thePolicy},
		"a policy, forbidden": {deniedAs(policy, metav1.StatusReasonForbidden, http.StatusForbidden), thePolicy},
	} {
		t.Run(name, func(t *testing.T) {
			found := WriteFailure(fmt.Errorf("failed to create Deployment: %w", test.err), &fixture.NewObject().Spec)
			if found.Reason != v1alpha2.ReasonForbidden || found.CanPass() || rollout.PlaceOfFailure(found) != fleet.Outside ||
				!strings.HasSuffix(found.Message, ". Change the spec to comply with "+test.remedy+", or change its rules") ||
				!strings.Contains(found.Message, "denied") {
				t.Errorf("%+v", found)
			}
		})
	}
}

// TestPatchThatFitsNoMore verifies that a patch that does not fit the running Pods is an invalid
// configuration, and that no child is rendered.
func TestPatchThatFitsNoMore(t *testing.T) {
	object := fixture.NewObject(fixture.WithPatches(fixture.PatchOf("Deployment",
		`[{op: test, path: /spec/template/spec/containers/0/ports/0/name, value: http}, {op: add, path: /spec/minReadySeconds, value: 5}]`)))
	in := declaredInputs(t, object)
	if found := operand.PatchErrors(object, in); len(found) > 0 {
		t.Fatal(found)
	}
	in.Running.Containers = []operand.ContainerPort{{Name: "web", Number: 8080, Listens: 8080}}
	children, err := operand.Children(object, in)
	if found := WriteFailure(err, nil); children != nil || found == nil || found.Reason != v1alpha2.ReasonInvalidConfiguration ||
		!strings.HasPrefix(found.Message, "spec.patches[0].patch: ") {
		t.Errorf("got %v, %v", found, children)
	}
}

// TestContestedFailure verifies that the message names the child, the field manager if it is known,
// and the remedy.
func TestContestedFailure(t *testing.T) {
	child := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	for manager, want := range map[string]string{"argocd": `field manager "argocd"`, "": "another client"} {
		found := ContestedFailure(apply.Contested{Child: child, Manager: manager})
		want += ` keeps changing Deployment "web", and the operator reverts each change. ` +
			"Stop that client, or declare its change in the spec"
		if found.Reason != v1alpha2.ReasonChildContested || found.Message != want || found.CanPass() {
			t.Errorf("%+v", found)
		}
	}
}
