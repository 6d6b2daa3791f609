package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/keypair"
	"github.com/example/nginx-operator/internal/live"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/revision"
	"github.com/example/nginx-operator/internal/rollout"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/test/golden"
)

// situation is a state of an instance whose messages users read.
type situation struct {
	name string
	// change changes an instance that is Ready, and the outcome of its reconcile.
	change func(object *v1alpha2.NginxOperator, state *live.Observed, result *Outcome)
}

// specSituations returns the situations in which a spec is not in effect.
func specSituations() []situation {
	missing := failure.Failure{Reason: v1alpha2.ReasonReferenceNotFound, Message: `spec.tls[0].secretName: Secret "shop" does not exist`}
	tried := failure.Failure{Reason: v1alpha2.ReasonRolledBack, Message: `rolled back generation 3 (image "nginx:none"): not found`}
	return []situation{
		{"the spec is blocked", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.State, o.Applied, o.Blockers = rollout.StateUnusable, nil, []failure.Failure{missing, missing}
		}},
		{"the spec is blocked, and nothing has served yet", func(_ *v1alpha2.NginxOperator, s *live.Observed, o *Outcome) {
			s.Deployment, o.State, o.Applied, o.Blockers = nil, rollout.StateUnusable, nil, []failure.Failure{missing}
		}},
		{"the spec is blocked, and the Deployment was deleted", func(object *v1alpha2.NginxOperator, s *live.Observed, o *Outcome) {
			s.Deployment, o.State, o.Applied, o.Blockers = nil, rollout.StateUnusable, nil, []failure.Failure{missing}
			object.Status.LastGoodRevision = &v1alpha2.GoodRevision{Revision: "web-1"}
		}},
		{"a change was rolled back", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.State, o.Blockers = rollout.StateRolledBack, []failure.Failure{tried}
		}},
		{"a change failed, and there is nothing to roll back to", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.State, o.Applied, o.Blockers = rollout.StateRolledBack, nil, []failure.Failure{tried}
		}},
		{"another attempt", func(_ *v1alpha2.NginxOperator, s *live.Observed, o *Outcome) {
			s.Deployment.Status.AvailableReplicas = 1
			o.Attempt = &v1alpha2.FailedRevision{Message: tried.Message, Attempts: 1}
		}},
		{"it waits for a rollout slot", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.State, o.WaitsFor = rollout.StateWaiting, `image "nginx:2"`
		}},
		{"it is paused", func(object *v1alpha2.NginxOperator, _ *live.Observed, _ *Outcome) { object.Spec.Paused = true }},
		{"it is paused, and changes wait", func(object *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			object.Spec.Paused, o.Waiting = true, []string{`Deployment "web"`, `the deletion of Ingress "web"`}
		}},
		{"a release refuses a stored value", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			path := operand.SpecPath.Child("monitoring", "podMonitor", "interval")
			o.Outdated = field.ErrorList{field.Invalid(path, "1s", "must be at least 5s")}
		}},
	}
}

// writeSituations returns the situations in which the API server refuses a child.
func writeSituations() []situation {
	fails := func(name string, err error) situation {
		return situation{name, func(object *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.Failure = WriteFailure(err, &object.Spec)
		}}
	}
	port := field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), 30080, nodePortTaken)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("exceeded quota: q"))
	denied := deniedAs(`admission webhook "policy.example.com" denied the request: no root`, metav1.StatusReasonForbidden, 403)
	forged := &apply.Forged{Kind: "ConfigMap", Child: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "web-0a1b2c3d4e"}}}
	others := []*apply.NotOurs{{Kind: "Deployment", Name: "web", Controller: `Shop "web"`}}
	return []situation{
		fails("a node port is taken", apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "web", field.ErrorList{port})),
		fails("a quota is exceeded", fmt.Errorf(`failed to create Deployment "web": %w`, forbidden)),
		fails("a policy denies a child", fmt.Errorf(`failed to create Deployment "web": %w`, denied)),
		fails("a name is taken", &apply.NotOurs{Kind: "Service", Name: "web", OwnerKind: "NginxOperator"}),
		fails("two names are taken", &apply.NotOurs{Kind: "Service", Name: "web", OwnerKind: "NginxOperator", Others: others}),
		fails("an earlier object is being deleted", &apply.NotOurs{Kind: "Service", Name: "web", Predecessor: true}),
		fails("a ConfigMap was forged", forged),
		fails("a ConfigMap of the running Pods was deleted", revision.Lost{Name: "web-0a1b2c3d4e"}),
		fails("the API server does not answer", errors.New(`failed to create Service "web": etcdserver: request timed out`)),
		{"all Pods are replaced after that", func(object *v1alpha2.NginxOperator, s *live.Observed, _ *Outcome) {
			object.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Reason: v1alpha2.ReasonForgedContent}}
			s.Deployment.Generation++
		}},
		{"an independent child is not written", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.Independent = []failure.Failure{{Reason: v1alpha2.ReasonAPIError, Message: `failed to create Ingress "web": timeout`}}
		}},
		{"another client keeps changing a child", func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			child := &appsv1.Deployment{TypeMeta: metav1.TypeMeta{Kind: "Deployment"}, ObjectMeta: metav1.ObjectMeta{Name: "web"}}
			o.Independent = []failure.Failure{ContestedFailure(apply.Contested{Child: child, Manager: "argocd"})}
		}},
	}
}

// certificateSituations returns the situations of certificates.
func certificateSituations() []situation {
	ending := func(name string, begin, end time.Time) situation {
		return situation{name, func(_ *v1alpha2.NginxOperator, _ *live.Observed, o *Outcome) {
			o.Certificates = []operand.Certificate{{Secret: "shop", Certificate: keypair.Certificate{NotBefore: begin, NotAfter: end}}}
		}}
	}
	year := func(number int) time.Time { return time.Date(number, 1, 1, 0, 0, 0, 0, time.UTC) }
	return []situation{
		ending("a certificate is valid", year(2026), year(2999)),
		ending("a certificate expires", year(1850), year(2100)),
		ending("a certificate has expired", year(2000), year(2001)),
	}
}

// TestMessages compares the messages of the conditions in each situation with a golden file.
func TestMessages(t *testing.T) {
	var text strings.Builder
	for _, test := range append(append(specSituations(), writeSituations()...), certificateSituations()...) {
		object, state := fixture.NewObject(), live.Observed{Deployment: fixture.NewDeployment(2)}
		result := newOutcome(t, object)
		test.change(object, &state, &result)
		fmt.Fprintf(&text, "# %s\n", test.name)
		writeConditions(&text, statusOf(object, state, result).Conditions)
	}

	here := gatewayv1.ParentReference{Name: "public"}
	for _, condition := range []gatewayv1.RouteConditionType{gatewayv1.RouteConditionAccepted, gatewayv1.RouteConditionResolvedRefs} {
		object := fixture.NewObject(fixture.Routed(v1alpha2.GatewayReference{Name: "public"}, "a.example.com"))
		route := routeWith(here, saidAt(2, string(condition), metav1.ConditionFalse, "Reason"))
		fmt.Fprintf(&text, "# the condition %s of an HTTPRoute is False\n", condition)
		state := live.Observed{Deployment: fixture.NewDeployment(2), Route: route}
		writeConditions(&text, statusOf(object, state, newOutcome(t, object)).Conditions)
	}

	object := fixture.NewObject(fixture.Routed(v1alpha2.GatewayReference{Name: "public"}, "a.example.com"))
	result := newOutcome(t, object)
	result.Applied.Missing = map[string]string{"HTTPRoute": "CustomResourceDefinition is missing"}
	result.Applied.Children = operand.WithoutMissing(result.Applied.Children, result.Applied.Missing)
	text.WriteString("# the Gateway API is not installed\n")
	writeConditions(&text, statusOf(object, live.Observed{Deployment: fixture.NewDeployment(2)}, result).Conditions)

	fixture.Golden(t, "messages.txt", text.String())
}

// writeConditions writes the conditions that have a message.
func writeConditions(text *strings.Builder, conditions []metav1.Condition) {
	for _, condition := range conditions {
		if condition.Message != "" {
			fmt.Fprintf(text, "%s=%s, %s: %s\n", condition.Type, condition.Status, condition.Reason, condition.Message)
		}
	}
	text.WriteString("\n")
}

// TestEveryMessageIsInTheGoldenFile verifies that reviewers see each message.
func TestEveryMessageIsInTheGoldenFile(t *testing.T) {
	golden.Messages(t, map[string]string{
		notMounted:              "TestCertificatesOfRunningPods verifies it",
		"another client":        "TestContestedFailure verifies it",
		"no longer degraded: …": "the reason is the only other word of this Event",
	}, "testdata/messages.txt")
}
