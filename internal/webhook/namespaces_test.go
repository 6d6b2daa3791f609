package webhook

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

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
