package metrics

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/pkg/apply"
)

func newObject(name string, ready metav1.ConditionStatus) *v1alpha2.NginxOperator {
	object := &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u", Generation: 2}}
	if ready != "" {
		object.Status.Conditions = []metav1.Condition{{Type: v1alpha2.ConditionReady, Status: ready}}
	}
	return object
}

func TestObjectsAndWrites(t *testing.T) {
	held := newObject("c", metav1.ConditionFalse)
	held.Status.BlockedBy = []v1alpha2.Blocker{
		{Reason: v1alpha2.ReasonReferenceNotFound, Message: "one"},
		{Reason: v1alpha2.ReasonReferenceNotFound, Message: "two"},
		{Reason: v1alpha2.ReasonPaused},
	}
	held.Status.LastGoodRevision = &v1alpha2.GoodRevision{}
	for days, name := range map[int]string{-1: "a", 6: "b", 8: "c", 31: "d", 90: "e"} {
		held.Status.Certificates = append(held.Status.Certificates, v1alpha2.Certificate{
			SecretName: name, NotAfter: metav1.NewTime(time.Now().AddDate(0, 0, days)),
		})
	}
	ready := newObject("a", metav1.ConditionTrue)
	all := []v1alpha2.NginxOperator{*ready, *ready, *held, *newObject("d", "")}
	registry := prometheus.NewRegistry()
	m := New(registry, func(context.Context) ([]v1alpha2.NginxOperator, bool) { return all, true })
	m.ChildWritten("Deployment", apply.VerbCreate)
	m.ChildWritten("Deployment", apply.VerbCreate)
	m.ChildWritten("ConfigMap", apply.VerbDelete)
	want := `
# HELP nginx_operator_blocked_objects Blocked NginxOperators, whose running state differs from the spec, by the reason in ` +
		`status.blockedBy. They can be Ready. Only the leader reports them.
# TYPE nginx_operator_blocked_objects gauge
nginx_operator_blocked_objects{reason="APIError"} 0
nginx_operator_blocked_objects{reason="APIMissing"} 0
nginx_operator_blocked_objects{reason="ChildContested"} 0
nginx_operator_blocked_objects{reason="ContainerConfigError"} 0
nginx_operator_blocked_objects{reason="CrashLoop"} 0
nginx_operator_blocked_objects{reason="DeploymentPaused"} 0
nginx_operator_blocked_objects{reason="Forbidden"} 0
nginx_operator_blocked_objects{reason="ForgedContent"} 0
nginx_operator_blocked_objects{reason="ImagePullFailed"} 0
nginx_operator_blocked_objects{reason="InvalidChild"} 0
nginx_operator_blocked_objects{reason="InvalidConfiguration"} 0
nginx_operator_blocked_objects{reason="InvalidReference"} 0
nginx_operator_blocked_objects{reason="NameConflict"} 0
nginx_operator_blocked_objects{reason="NamespaceTerminating"} 0
nginx_operator_blocked_objects{reason="Paused"} 1
nginx_operator_blocked_objects{reason="ProgressDeadlineExceeded"} 0
nginx_operator_blocked_objects{reason="QuotaExceeded"} 0
nginx_operator_blocked_objects{reason="ReferenceNotFound"} 1
nginx_operator_blocked_objects{reason="RolledBack"} 0
nginx_operator_blocked_objects{reason="RouteNotAccepted"} 0
nginx_operator_blocked_objects{reason="Unschedulable"} 0
# HELP nginx_operator_certificates Certificates that the Pods of NginxOperators mount, by remaining time: ` +
		`expired, 7d (at most seven days), 30d, more. Only the leader reports them.
# TYPE nginx_operator_certificates gauge
nginx_operator_certificates{left="30d"} 1
nginx_operator_certificates{left="7d"} 1
nginx_operator_certificates{left="expired"} 1
nginx_operator_certificates{left="more"} 2
# HELP nginx_operator_child_writes_total Writes of children, by kind and verb (create, patch, delete). ` +
		`It does not grow at steady state.
# TYPE nginx_operator_child_writes_total counter
nginx_operator_child_writes_total{kind="ConfigMap",verb="delete"} 1
nginx_operator_child_writes_total{kind="Deployment",verb="create"} 2
# HELP nginx_operator_down_objects NginxOperators that have been Ready, have replicas above 0, and have no ready Pod. ` +
		`Only the leader reports them.
# TYPE nginx_operator_down_objects gauge
nginx_operator_down_objects 1
# HELP nginx_operator_objects NginxOperators by the status of their Ready condition (True, False, Unknown). ` +
		`Only the leader reports them.
# TYPE nginx_operator_objects gauge
nginx_operator_objects{ready="False"} 1
nginx_operator_objects{ready="True"} 2
nginx_operator_objects{ready="Unknown"} 1
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"nginx_operator_blocked_objects", "nginx_operator_certificates", "nginx_operator_child_writes_total",
		"nginx_operator_down_objects", "nginx_operator_objects")
	if err != nil {
		t.Error(err)
	}
}
