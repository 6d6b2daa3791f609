package integration

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// mirroredImage is the image that mirrorImages sets.
const mirroredImage = "mirror.example.com/nginx:1"

// TestPausedWhileAdmissionChangesChildren verifies that a paused object whose Deployment an
// admission webhook has changed stays Ready when another process becomes the leader: no change
// waits. A change of the spec does.
func TestPausedWhileAdmissionChangesChildren(t *testing.T) {
	namespace := newNamespace(t)
	mirrorImages(t, namespace)
	object := createWeb(t, namespace, nil)
	if image := waitForChildren(t, namespace, "web").deployment.Spec.Template.Spec.Containers[0].Image; image != mirroredImage {
		t.Fatalf("the webhook has not changed the image %s", image)
	}
	makeReady(t, namespace, "web")
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	waitForCondition(t, namespace, "web", v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonPaused)

	must(t, suite.operator.KillLeader(suite.admin))
	audited := len(audit(t))
	startNextOperator(t)
	waitForIdle(t)
	waitForCondition(t, namespace, "web", v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	waitForNoBlocker(t, namespace)
	if writes := withoutEvents(writesOf(t, audited, namespace)); len(writes) > 0 {
		t.Errorf("writes of a paused object %v", writes)
	}

	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Rollout = &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](60)}
	})
	waitForStatus(t, namespace, "web", func(object *v1alpha2.NginxOperator) error {
		if blocked := object.Status.BlockedBy; len(blocked) != 1 || blocked[0].Message != `spec.paused blocks: Deployment "web"` {
			return fmt.Errorf("blocked by %+v", blocked)
		}
		return nil
	})
}

// mirrorImages installs a webhook that sets the image of each Deployment in a namespace, as
// policies for mirrors do. It returns when the webhook is called, and removes the webhook when the
// test ends.
func mirrorImages(t *testing.T, namespace string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, mirroredImage)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "not a review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{
			UID: review.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
		}
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "mirror-images-" + namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mirror-images.example.com", AdmissionReviewVersions: []string{"v1"},
			SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: &server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}},
		}},
	}
	create(t, configuration)
	t.Cleanup(func() { must(t, suite.admin.Delete(context.Background(), configuration)) })
	waitFor(t, func() error {
		deployment := minimalDeployment(namespace)
		if err := suite.admin.Create(t.Context(), deployment, client.DryRunAll); err != nil {
			return err
		}
		if image := deployment.Spec.Template.Spec.Containers[0].Image; image != mirroredImage {
			return fmt.Errorf("the webhook is not called, the image is %s", image)
		}
		return nil
	})
}
