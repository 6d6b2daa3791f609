package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// TestDifferenceOfCustomResource verifies that a list of a custom resource is replaced as a whole,
// and only if a declared value differs. Defaults in its elements are not a difference, including
// the defaults of a later schema.
func TestDifferenceOfCustomResource(t *testing.T) {
	same := func(*gatewayv1.HTTPRoute) {}
	declared := func() *gatewayv1.HTTPRoute {
		route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"a": "1"}}}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "public", SectionName: ptr.To[gatewayv1.SectionName]("https")}}
		route.Spec.Hostnames = []gatewayv1.Hostname{"a.example.com", "b.example.com"}
		return route
	}
	for name, test := range map[string]struct {
		declare, drift func(*gatewayv1.HTTPRoute)
		want           string
	}{
		"nothing differs": {same, same, "{}"},
		"defaults, status and what others set": {same, func(r *gatewayv1.HTTPRoute) {
			r.Spec.ParentRefs[0].Kind = ptr.To[gatewayv1.Kind]("Gateway")
			r.Status.Parents = make([]gatewayv1.RouteParentStatus, 1)
			r.Labels["theirs"] = "1"
		}, "{}"},
		"a name drifted": {
			same, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].Name = "other" },
			`{"spec":{"parentRefs":[{"name":"public","sectionName":"https"}]}}`,
		},
		"a field of an element is gone": {
			same, func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].SectionName = nil },
			`{"spec":{"parentRefs":[{"name":"public","sectionName":"https"}]}}`,
		},
		"an element more": {
			same, func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = append(r.Spec.Hostnames, "theirs") },
			`{"spec":{"hostnames":["a.example.com","b.example.com"]}}`,
		},
		"another order": {
			same, func(r *gatewayv1.HTTPRoute) {
				r.Spec.Hostnames[0], r.Spec.Hostnames[1] = r.Spec.Hostnames[1], r.Spec.Hostnames[0]
			},
			`{"spec":{"hostnames":["a.example.com","b.example.com"]}}`,
		},
		"a field of an element is no longer declared": {
			func(r *gatewayv1.HTTPRoute) { r.Spec.ParentRefs[0].SectionName = nil }, same, `{"spec":{"parentRefs":[{"name":"public"}]}}`,
		},
		"a list is no longer declared": {
			func(r *gatewayv1.HTTPRoute) { r.Spec.Hostnames = nil }, same, `{"spec":{"hostnames":null}}`,
		},
		"drift beside a default": {same, func(r *gatewayv1.HTTPRoute) {
			r.Spec.ParentRefs[0].Kind = ptr.To[gatewayv1.Kind]("Gateway")
			r.Labels["a"] = "2"
		}, `{"metadata":{"labels":{"a":"1"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			live, child := stored(t, declared()), declared()
			test.drift(live)
			test.declare(child)
			if patch := patchOf(t, live, child); patch != test.want {
				t.Errorf("patch %s, want %s", patch, test.want)
			}
		})
	}
}
