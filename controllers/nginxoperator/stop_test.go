package nginxoperator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/codec"
)

// TestStopDuringStatusWrite verifies that a transition is reported by the process that writes it,
// even if the process is stopped during the write.
func TestStopDuringStatusWrite(t *testing.T) {
	p := newProcess(t)
	p.rollOut(podReady)
	p.edit(func(s *v1alpha2.NginxOperatorSpec) {
		s.Config = &v1alpha2.Config{ConfigMapRef: &v1alpha2.ConfigMapKeyReference{Name: "servers"}}
	})
	servers := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "servers"}}
	servers.Data = map[string]string{"nginx.conf": "server { listen 8080; }"}
	p.make(servers)

	recorder := events.NewFakeRecorder(10)
	p.reconciler.Recorder = recorder
	ctx, cancel := context.WithCancel(t.Context())
	p.stop = cancel
	if _, err := p.reconciler.Reconcile(ctx, p.object()); err != nil {
		t.Errorf("Reconcile() = %v", err)
	}
	if degraded := p.condition(v1alpha2.ConditionDegraded); degraded.Status != metav1.ConditionFalse {
		t.Fatalf("not recovered: %+v", degraded)
	}
	wantEvent(t, recorder, "Recovered")

	recorder = events.NewFakeRecorder(10)
	p.reconciler.Recorder = recorder
	ctx, p.stop = context.WithCancel(t.Context())
	unreadable := p.object()
	codec.MarkUnreadable(unreadable, "no text")
	if err := p.reconciler.reportUnreadable(ctx, unreadable, "no text"); err != nil {
		t.Errorf("reportUnreadable() = %v", err)
	}
	wantEvent(t, recorder, v1alpha2.ReasonUnreadable)
}

// wantEvent requires one of the Events to have a text.
func wantEvent(t *testing.T, recorder *events.FakeRecorder, text string) {
	t.Helper()
	close(recorder.Events)
	for sent := range recorder.Events {
		if strings.Contains(sent, text) {
			return
		}
	}
	t.Errorf("no Event has %q", text)
}
