package simulation

import (
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/simulation/storage"
	"github.com/example/nginx-operator/test/simulation/world"
)

// childRows are the rows of defects of release 0.7.0 in certificates, denied writes, and single
// children.
var childRows = []tale{
	{"row-02 the status reports the certificate of the Pods and what holds its renewal", func(s *story) {
		s.serveCertificates("cert", "cert2")
		first := s.Certificates["cert"].NotAfter
		s.Remove(storage.Secrets, "cert2")
		s.Run(time.Hour)
		s.RenewCertificateOf("cert", validity)
		renewed := time.Now()
		s.Run(time.Hour)
		s.need(s.pods()[0].CreationTimestamp.Time.Before(renewed), "the Pods were replaced, although none can start")
		reported := s.Instance("web").Status.Certificates
		at := slices.IndexFunc(reported, func(one v1alpha2.Certificate) bool { return one.SecretName == "cert" })
		if at < 0 || !reported[at].NotAfter.Time.Equal(first) {
			s.errorf("the Pods serve the certificate until %s, and the status reports %+v", first, reported)
		}
		if text := s.explained() + s.condition(v1alpha2.ConditionCertificatesValid).Message; !contains(text, `"cert"`, `"cert2"`) {
			s.errorf("the status does not say that the missing Secret holds the renewal: %s", text)
		}
	}},
	{"row-02 an expired certificate of the Pods is reported although its Secret is renewed", func(s *story) {
		s.serveCertificates("cert", "cert2")
		s.Remove(storage.Secrets, "cert2")
		for range 4 {
			s.Run(validity / 3)
			s.RenewCertificateOf("cert", validity)
		}
		s.Run(time.Hour)
		if valid := s.condition(v1alpha2.ConditionCertificatesValid); valid.Reason != v1alpha2.ReasonCertificateExpired {
			s.errorf("the certificates of the Pods have expired, and CertificatesValid is %s %s: %s", valid.Status, valid.Reason, valid.Message)
		}
		if s.Metric("nginx_operator_certificates", "left", "expired") == 0 {
			s.errorf("the alert has no expired certificate")
		}
	}},
	{"row-03 a policy that requires an annotation is reported and repeated", func(s *story) {
		s.serve(func(of *spec) {
			of.Service = &v1alpha2.Service{Annotations: map[string]string{"cost": "42", "other": "1"}}
		})
		s.require(storage.Services, world.DeniedWith(storage.Services, "web", http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
			"ValidatingAdmissionPolicy 'cost' with binding 'cost' denied request: the annotation cost is required"),
			"metadata", "annotations", "cost")
		s.edit(func(of *spec) { delete(of.Service.Annotations, "cost") })
		s.mustReportDenial(func() bool { return s.service().Annotations["cost"] != "" })
	}},
	{"row-03 a webhook that requires a node selector is reported and repeated", func(s *story) {
		s.serve(func(of *spec) { of.PodTemplate = &v1alpha2.PodTemplate{NodeSelector: map[string]string{"zone": "a"}} })
		s.require(storage.Deployments, denied(http.StatusBadRequest, metav1.StatusReasonBadRequest),
			"spec", "template", "spec", "nodeSelector", "zone")
		s.edit(func(of *spec) { of.PodTemplate = nil })
		s.mustReportDenial(func() bool { return len(s.Deployment("web").Spec.Template.Spec.NodeSelector) > 0 })
	}},
	{"row-08 the certificate of the running Pods is renewed while another spec has failed", func(s *story) {
		s.RenewCertificateOf("cert2", validity)
		s.serveCertificates("cert")
		s.failWith("cert2")
		s.Run(70 * time.Minute) // the next attempt follows an hour later, and would find the renewed Secret
		s.RenewCertificateOf("cert", validity)
		renewed := time.Now().Add(-time.Second)
		s.Run(5 * time.Minute)
		for _, pod := range s.pods() {
			if pod.CreationTimestamp.Time.Before(renewed) {
				s.errorf("five minutes after the renewal, Pod %s has the old certificate", pod.Name)
			}
		}
	}},
	{"row-08 a missing Secret of the running Pods is named while another spec has failed", func(s *story) {
		s.RenewCertificateOf("cert2", validity)
		s.serveCertificates("cert")
		s.failWith("cert2")
		s.Remove(storage.Secrets, "cert")
		s.Run(time.Minute)
		s.Remove(storage.Pods, s.pods()[0].Name)
		s.Run(30 * time.Minute)
		if text := s.explained(); !contains(text, `"cert"`) {
			s.errorf("the status does not name the missing Secret: %s", text)
		}
	}},
	{"row-09 a webhook that denies with 409 is reported", denies(http.StatusConflict)},
	{"row-09 a webhook that denies with 405 is reported", denies(http.StatusMethodNotAllowed)},
	{"row-11 a kind that is not served at the election loses no object", func(s *story) {
		s.installRoutes()
		s.serve(route)
		s.need(s.exists(storage.HTTPRoutes), "there is no HTTPRoute")
		s.Establish(storage.HTTPRoutes, false)
		s.Restart(0)
		s.edit(func(of *spec) { of.Service = &v1alpha2.Service{Annotations: map[string]string{"a": "b"}} })
		s.Run(time.Minute)
		s.Establish(storage.HTTPRoutes, true)
		s.Run(10 * time.Minute)
		for _, version := range s.Store.Since(0) {
			if version.Resource == storage.HTTPRoutes && version.Deleted {
				s.errorf("at %s, the live HTTPRoute was deleted", version.At.Format(time.TimeOnly))
			}
		}
		s.need(s.service().Annotations["a"] == "b", "the Service is not that of the spec")
		s.need(s.explained() == "", "the status still has a problem: %s", s.explained())
	}},
	{"row-11 an object comes back with its kind", func(s *story) {
		s.installRoutes()
		s.serve(route)
		s.Uninstall(storage.HTTPRoutes)
		s.Run(10 * time.Minute)
		if s.isReady() && s.explained() == "" {
			s.errorf("the status does not say that there is no HTTPRoute")
		}
		s.Install(storage.HTTPRoutes)
		s.Run(5 * time.Minute)
		if !s.exists(storage.HTTPRoutes) {
			s.errorf("the HTTPRoute is not back: %s", s.explained())
		}
	}},
	{"row-12 the Ingress stays while Gateway API is not installed", func(s *story) {
		s.serve(ingress)
		s.mustKeepIngress()
	}},
	{"row-12 the Ingress stays while the route is refused", func(s *story) {
		s.installRoutes()
		s.serve(ingress)
		s.Faults.Refuse = map[*storage.Resource]error{storage.HTTPRoutes: world.Denied(storage.HTTPRoutes, "web")}
		s.mustKeepIngress()
	}},
	{"row-12 the Ingress stays until a Gateway accepts the route", func(s *story) {
		s.installRoutes()
		s.serve(ingress)
		s.mustKeepIngress()
		s.need(s.exists(storage.HTTPRoutes), "there is no HTTPRoute: %s", s.explained())
		s.SetStatus(keyOf(storage.HTTPRoutes), map[string]any{"parents": []any{map[string]any{
			"parentRef":      map[string]any{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "gw"},
			"controllerName": "example.com/gateway",
			"conditions":     []any{accepted("Accepted"), accepted("ResolvedRefs")},
		}}})
		s.Run(10 * time.Minute)
		if s.exists(storage.Ingresses) {
			s.errorf("the Gateway accepts the route, and the Ingress stays: %s", s.explained())
		}
	}},
	{"row-12 the route stays until the Ingress has an address", func(s *story) {
		s.installRoutes()
		s.serve(route)
		s.edit(ingress)
		s.Run(10 * time.Minute)
		s.mustExist(storage.HTTPRoutes)
		s.need(s.exists(storage.Ingresses), "there is no Ingress: %s", s.explained())
		s.SetStatus(keyOf(storage.Ingresses), map[string]any{
			"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}},
		})
		s.Run(10 * time.Minute)
		if s.exists(storage.HTTPRoutes) {
			s.errorf("the Ingress has an address, and the route stays: %s", s.explained())
		}
	}},
	{"row-13 a fight over the NetworkPolicy is reported with the field manager", func(s *story) {
		s.serve(narrow)
		for range 400 {
			policy := s.policy()
			policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
			policy.ManagedFields = []metav1.ManagedFieldsEntry{{
				Manager: "rogue", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "networking.k8s.io/v1", FieldsType: "FieldsV1",
				FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:ingress":{}}}`)}, Time: ptr.To(metav1.Now()),
			}}
			s.Must(s.Write(policy))
			s.Run(time.Second)
		}
		if text := s.explained(); s.condition(v1alpha2.ConditionDegraded).Status != metav1.ConditionTrue || !contains(text, "rogue") {
			s.errorf("for 400 seconds, a client opens the NetworkPolicy, and the status says %q", text)
		}
		s.Run(time.Hour)
		if !s.isNarrow() || !s.isReady() || s.condition(v1alpha2.ConditionDegraded).Status == metav1.ConditionTrue {
			s.errorf("an hour after the fight: %+v, %s", s.policy().Spec, s.explained())
		}
	}},
}

// contains reports whether a text has all parts.
func contains(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
}

func accepted(condition string) map[string]any {
	return map[string]any{
		"type": condition, "status": "True", "reason": condition, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
}

// mustKeepIngress declares an HTTPRoute instead of the Ingress, and records a failure if the
// Ingress is gone 10 minutes later.
func (s *story) mustKeepIngress() {
	s.edit(route)
	s.Run(10 * time.Minute)
	s.mustExist(storage.Ingresses)
}

func (s *story) mustExist(of *storage.Resource) {
	s.t.Helper()
	if !s.exists(of) {
		s.errorf("the %s is gone: %s", of.Kind, s.explained())
	}
}

// validity is the time for which the certificates of stories are valid.
const validity = 36 * time.Hour

const host = "www.example.com"

// ingress exposes the instance by an Ingress only.
func ingress(of *spec) {
	of.Expose = &v1alpha2.Expose{Ingress: &v1alpha2.Ingress{Hosts: []v1alpha2.IngressHost{{Host: host}}}}
}

// installRoutes installs the Gateway API, and restarts the operator, which need not wait then.
func (s *story) installRoutes() {
	s.Install(storage.HTTPRoutes)
	s.Restart(0)
}

// route exposes the instance by an HTTPRoute only.
func route(of *spec) {
	of.Expose = &v1alpha2.Expose{HTTPRoute: &v1alpha2.HTTPRoute{
		ParentRefs: []v1alpha2.GatewayReference{{Name: "gw"}}, Hostnames: []string{host},
	}}
}

// serveCertificates creates Secrets with certificates, and serves each at a port of its own.
func (s *story) serveCertificates(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.RenewCertificateOf(name, validity)
	}
	s.serve(func(of *spec) {
		for i, name := range names {
			of.TLS = append(of.TLS, v1alpha2.TLS{SecretName: name, Port: ptr.To(8443 + int32(i))}) //nolint:gosec // a few
		}
	})
}

// failWith applies badImage and another Secret, and waits until the change is rolled back.
func (s *story) failWith(secret string) {
	s.t.Helper()
	good := s.image()
	s.lose("manifest unknown")
	s.edit(func(of *spec) {
		useBadImage(of)
		of.TLS[0].SecretName = secret
	})
	s.Run(time.Minute)
	s.need(s.image() == good, "not rolled back: %s", s.explained())
}

// denied returns the error of an admission webhook with a code of its own.
func denied(code int32, reason metav1.StatusReason) error {
	return world.DeniedWith(storage.Deployments, "web", code, reason, `admission webhook "policy.example.com" denied the request: no`)
}

// denies returns a story in which a webhook denies each change of the Deployment with a code.
func denies(code int32) func(*story) {
	return func(s *story) {
		s.serve()
		s.Faults.Refuse = map[*storage.Resource]error{storage.Deployments: denied(code, "")}
		s.edit(func(of *spec) { of.ForceRedeploy = "x" })
		s.Run(30 * time.Minute)
		s.mustReport(v1alpha2.ReasonForbidden)
		warns := func(event string) bool { return contains(event, corev1.EventTypeWarning, "denied the request") }
		if events := s.Events.All(); !slices.ContainsFunc(events, warns) {
			s.errorf("the Events are %q", events)
		}
	}
}

// mustReport records a failure unless blockedBy has a reason for the current generation.
func (s *story) mustReport(reason string) {
	s.t.Helper()
	status := s.Instance("web").Status
	has := slices.ContainsFunc(status.BlockedBy, func(one v1alpha2.Blocker) bool { return one.Reason == reason })
	if !has || status.ObservedGeneration != s.Instance("web").Generation {
		s.errorf("blockedBy is %+v, for generation %d of %d", status.BlockedBy, status.ObservedGeneration, s.Instance("web").Generation)
	}
}

// require denies each write of a kind that removes a field.
func (s *story) require(of *storage.Resource, err error, path ...string) {
	s.Store.Admit = func(kind *storage.Resource, before, after map[string]any) error {
		_, was, _ := unstructured.NestedFieldNoCopy(before, path...)
		_, is, _ := unstructured.NestedFieldNoCopy(after, path...)
		if kind == of && after != nil && was && !is {
			return err
		}
		return nil
	}
}

// denyDeletion denies each deletion of a kind.
func (s *story) denyDeletion(of *storage.Resource) {
	s.Store.Admit = func(kind *storage.Resource, _, after map[string]any) error {
		if kind == of && after == nil {
			return world.DeniedWith(of, "web", http.StatusForbidden, metav1.StatusReasonForbidden,
				"ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: Ingresses must not be deleted")
		}
		return nil
	}
}

// mustReportDenial records a failure if a denied removal of a field is not reported while the
// policy denies it, or is not repeated after that.
func (s *story) mustReportDenial(has func() bool) {
	s.t.Helper()
	s.Run(10 * time.Minute)
	s.need(has(), "the policy does not deny the removal")
	s.mustReport(v1alpha2.ReasonForbidden)
	s.Store.Admit = nil
	s.Restart(0)
	s.Run(24 * time.Hour)
	if has() || !s.isReady() {
		s.errorf("a day after the policy is gone, the field is still there: %s", s.explained())
	}
}
