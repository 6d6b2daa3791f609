package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

// at returns the context of a write at an API version.
func at(t *testing.T, version string) context.Context {
	request := admission.Request{}
	request.RequestKind = &metav1.GroupVersionKind{Group: v1alpha2.GroupVersion.Group, Version: version, Kind: "NginxOperator"}
	return admission.NewContextWithRequest(t.Context(), request)
}

func object(spec v1alpha2.NginxOperatorSpec) *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: spec}
}

func TestRefusalNamesTheFields(t *testing.T) {
	spec := v1alpha2.NginxOperatorSpec{
		Ports:  []v1alpha2.Port{{Name: "http", Port: 9090}},
		Config: &v1alpha2.Config{Inline: "server { listen 8080; }"},
	}
	onePort := v1alpha2.NginxOperatorSpec{
		Ports: []v1alpha2.Port{{Name: "http", Port: 9090}}, TLS: []v1alpha2.TLS{{SecretName: "shop", Port: ptr.To[int32](9090)}},
	}
	for _, test := range []struct {
		name, version string
		spec          v1alpha2.NginxOperatorSpec
		want          []metav1.StatusCause
	}{
		{"configuration at v1alpha2", v1alpha2.GroupVersion.Version, spec, []metav1.StatusCause{{
			Type: "FieldValueInvalid", Field: "spec.config.inline",
			Message: "Invalid value: line 1: listen 8080, but spec.ports[0].port is 9090. " +
				"Write `listen 9090;`, or change spec.ports[0].port to 8080",
		}}},
		{"configuration at v1alpha1", v1alpha1.GroupVersion.Version, spec, []metav1.StatusCause{{
			Type: "FieldValueInvalid", Field: "spec.config.inline",
			Message: "Invalid value: line 1: listen 8080, but spec.port is 9090. Write `listen 9090;`, or change spec.port to 8080 " +
				"(a field of v1alpha2; to change it, run kubectl edit nginxoperators.v1alpha2.operator.example.com web)",
		}}},
		{"port at v1alpha2", v1alpha2.GroupVersion.Version, onePort, []metav1.StatusCause{{
			Type: "FieldValueInvalid", Field: "spec.tls[0].port",
			Message: "Invalid value: 9090: spec.ports[0].port already has this port; choose another port",
		}}},
		{"port at v1alpha1", v1alpha1.GroupVersion.Version, onePort, []metav1.StatusCause{{
			Type: "FieldValueInvalid", Field: "spec.tls[0].port",
			Message: "Invalid value: 9090: spec.port already has this port; choose another port (a field of v1alpha2; to change it, " +
				"run kubectl edit nginxoperators.v1alpha2.operator.example.com web)",
		}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Validator{}.ValidateCreate(at(t, test.version), object(test.spec))
			var status apierrors.APIStatus
			if !apierrors.IsInvalid(err) || !errors.As(err, &status) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, status.Status().Details.Causes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestUpdatesThatAreAdmitted(t *testing.T) {
	bad, other := v1alpha2.NginxOperatorSpec{Image: "No Image"}, v1alpha2.NginxOperatorSpec{Image: "Other Image"}
	labelled := object(bad)
	labelled.Labels = map[string]string{"team": "shop"}
	leaving := object(other)
	leaving.DeletionTimestamp = ptr.To(metav1.NewTime(time.Unix(1, 0)))
	for name, test := range map[string]struct {
		object  *v1alpha2.NginxOperator
		refused bool
	}{
		"the spec stays":               {object: labelled},
		"the object is going":          {object: leaving},
		"the spec is as bad as before": {object: object(other), refused: true},
		"the spec is restored":         {object: object(v1alpha2.NginxOperatorSpec{})},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, err := Validator{}.ValidateUpdate(at(t, "v1alpha2"), object(bad), test.object)
			if (err != nil) != test.refused || len(warnings) > 0 {
				t.Errorf("error %v, warnings %q", err, warnings)
			}
		})
	}
	if _, err := (Validator{}).ValidateDelete(t.Context(), object(bad)); err != nil {
		t.Error(err)
	}
}

// TestWarningsAreForV1alpha2 verifies that a v1alpha1 client gets no warnings about v1alpha2 fields
// that another client set.
func TestWarningsAreForV1alpha2(t *testing.T) {
	for version, want := range map[string]admission.Warnings{
		"v1alpha1": nil,
		"v1alpha2": {"spec.paused: changes are not applied until it is false"},
	} {
		got, err := Validator{}.ValidateCreate(at(t, version), object(v1alpha2.NginxOperatorSpec{Paused: true}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", version, diff)
		}
	}
}

// TestValidatorAsksAboutPatches verifies that patches are validated only if the rest of the spec is
// valid. Their errors reject the object, and their warnings are returned.
func TestValidatorAsksAboutPatches(t *testing.T) {
	asked := 0
	answer := func(*v1alpha2.NginxOperator) (field.ErrorList, []string) {
		asked++
		return nil, []string{"hits nothing"}
	}
	warnings, err := Validator{Patches: answer}.ValidateCreate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{Paused: true}))
	if err != nil || asked != 1 || len(warnings) != 2 || warnings[1] != "hits nothing" {
		t.Errorf("asked %d times: %v, %v", asked, warnings, err)
	}
	_, err = Validator{Patches: answer}.ValidateCreate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{Image: "No Image"}))
	if err == nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	wrong := func(*v1alpha2.NginxOperator) (field.ErrorList, []string) {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "patches").Index(0), "no")}, nil
	}
	_, err = Validator{Patches: wrong}.ValidateCreate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{}))
	if err == nil || !strings.Contains(err.Error(), "spec.patches[0]: Forbidden: no") {
		t.Error(err)
	}
}

// TestUnwatchedNamespace verifies that a write outside the watched namespaces is validated like any
// other, and admitted with a warning at both versions. A write that leaves the spec unchanged gets
// none.
func TestUnwatchedNamespace(t *testing.T) {
	good := v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)}
	bad := v1alpha2.NginxOperatorSpec{Expose: &v1alpha2.Expose{}}
	only := func(watched string) Validator {
		return Validator{Watches: func(namespace string) bool { return namespace == watched }}
	}
	for _, version := range []string{v1alpha1.GroupVersion.Version, v1alpha2.GroupVersion.Version} {
		ctx := at(t, version)
		for name, test := range map[string]struct {
			validator Validator
			warns     bool
		}{"all": {Validator{}, false}, "watched": {only("shop"), false}, "elsewhere": {only("web"), true}} {
			warnings, err := test.validator.ValidateCreate(ctx, object(good))
			if err != nil {
				t.Errorf("%s, %s: %v", version, name, err)
			}
			if got := strings.Join(warnings, "\n"); strings.Contains(got, `does not watch namespace "shop"`) != test.warns ||
				test.warns && !strings.Contains(got, "--watch-namespaces") {
				t.Errorf("%s, %s: warnings %q", version, name, warnings)
			}
			if _, err := test.validator.ValidateCreate(ctx, object(bad)); err == nil {
				t.Errorf("%s, %s: an invalid spec is admitted", version, name)
			}
			if warnings, err := test.validator.ValidateUpdate(ctx, object(good), object(good)); err != nil || len(warnings) > 0 {
				t.Errorf("%s, %s: without a change: %q, %v", version, name, warnings, err)
			}
		}
	}
}
