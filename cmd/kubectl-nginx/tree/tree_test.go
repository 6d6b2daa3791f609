package tree

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/golden"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func ago(span time.Duration) metav1.Time { return metav1.NewTime(now.Add(-span)) }

func related(apiVersion, kind, name string) v1alpha2.RelatedObject {
	return v1alpha2.RelatedObject{APIVersion: apiVersion, Kind: kind, Name: name}
}

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: ago(2 * time.Hour),
	}
}

// instance returns a healthy object.
func instance() *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 3},
		Spec:       v1alpha2.NginxOperatorSpec{Replicas: ptr.To[int32](2)},
		Status: v1alpha2.NginxOperatorStatus{
			ReadyReplicas: 2, UpdatedReplicas: 2, Image: "example.com/nginx:1", URL: "http://web.shop.svc:8080",
			Conditions: []metav1.Condition{
				condition(v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady, "2 of 2 replicas are ready"),
				condition(v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolloutComplete, "2 of 2 replicas are ready"),
				condition(v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected, ""),
			},
			LastGoodRevision: &v1alpha2.GoodRevision{Revision: "web-1111111111", Image: "example.com/nginx:1", Time: ago(72 * time.Hour)},
			RelatedObjects: []v1alpha2.RelatedObject{
				related("v1", "ConfigMap", "web-0123456789"), related("v1", "Service", "web"), related("apps/v1", "Deployment", "web"),
			},
		},
	}
}

func pod(name string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(10 * time.Minute)},
		Spec:       corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{Name: "nginx", Image: "example.com/nginx:1"}}},
		Status:     status,
	}
}

func running(restarts int32) corev1.PodStatus {
	return corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{RestartCount: restarts}},
	}
}

func liveChildren() map[v1alpha2.RelatedObject]client.Object {
	return map[v1alpha2.RelatedObject]client.Object{
		related("v1", "ConfigMap", "web-0123456789"): &metav1.PartialObjectMetadata{},
		related("v1", "Service", "web"): &corev1.Service{Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 8080, NodePort: 30080}, {Port: 8443}},
		}},
		related("apps/v1", "Deployment", "web"): &appsv1.Deployment{
			Spec:   appsv1.DeploymentSpec{Replicas: ptr.To[int32](2)},
			Status: appsv1.DeploymentStatus{ReadyReplicas: 2, UpdatedReplicas: 2},
		},
		related("networking.k8s.io/v1", "Ingress", "web"): &networkingv1.Ingress{
			Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "a.example.com"}, {}}},
		},
		related("policy/v1", "PodDisruptionBudget", "web"): &policyv1.PodDisruptionBudget{
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 1},
		},
		related("autoscaling/v2", "HorizontalPodAutoscaler", "web"): &autoscalingv2.HorizontalPodAutoscaler{
			Spec:   autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 5},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 2},
		},
	}
}

func well() Report {
	object := instance()
	object.Status.RelatedObjects = append(object.Status.RelatedObjects, related("policy/v1", "PodDisruptionBudget", "web"),
		related("autoscaling/v2", "HorizontalPodAutoscaler", "web"), related("networking.k8s.io/v1", "Ingress", "web"))
	object.Status.PatchedKinds = []string{"Service"}
	object.Status.Addresses = []v1alpha2.Address{{Type: v1alpha2.AddressNodePort, Value: "30080", Port: 8080}}
	object.Status.Certificates = []v1alpha2.Certificate{
		{SecretName: "cert", NotAfter: metav1.NewTime(now.Add(62 * 24 * time.Hour)), DNSNames: []string{"a.example.com"}, Issuer: "A CA"},
	}
	return WithDetails(object, Details{
		Children: liveChildren(), Pods: []corev1.Pod{pod("web-b", running(2)), pod("web-a", running(0))},
	})
}

func rolledBack() Report {
	object := instance()
	const failed = "the rollout failed"
	object.Status.Conditions[0] = condition(v1alpha2.ConditionReady, metav1.ConditionFalse, v1alpha2.ReasonRolledBack, failed)
	object.Status.Conditions[2] = condition(v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack, failed)
	object.Status.BlockedBy = []v1alpha2.Blocker{
		{Reason: v1alpha2.ReasonRolledBack, Message: "nginx says:\nunknown directive \x1b[31m\"serve\""},
	}
	object.Status.FailedRevisions = []v1alpha2.FailedRevision{
		{Revision: "web-2222222222", Reason: v1alpha2.ReasonCrashLoop, Message: "exit code 1", Time: ago(time.Minute)},
	}
	crashing := pod("web-c", corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}},
	}})
	crashing.Spec.Containers[0].Image = "example.com/nginx:2"
	ending := pod("web-d", running(0))
	ending.DeletionTimestamp = &metav1.Time{Time: now}
	homeless := pod("web-e", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}})
	homeless.Spec.NodeName = ""
	starting := pod("web-f", corev1.PodStatus{Phase: corev1.PodRunning})
	children := liveChildren()
	delete(children, related("v1", "Service", "web"))
	children[related("apps/v1", "Deployment", "web")].SetAnnotations(map[string]string{wellknown.AnnotationChange: "3333333333"})
	return WithDetails(object, Details{Children: children, Pods: []corev1.Pod{crashing, ending, homeless, starting}})
}

// ofEditor returns the report for a user of the editor role, which has only NginxOperators.
func ofEditor() Report {
	object := instance()
	details := Details{Unknown: object.Status.RelatedObjects}
	for _, resource := range []string{"configmaps", "services", "deployments.apps"} {
		details.Forbidden = append(details.Forbidden, Forbidden{Verb: "get", Resource: resource})
	}
	details.Forbidden = append(details.Forbidden, Forbidden{Verb: "get", Resource: "services"}, Forbidden{Verb: "list", Resource: "pods"})
	return WithDetails(object, details)
}

func pausedAndExpired() Report {
	object := instance()
	object.Spec.Paused = true
	object.Generation = 4
	object.Status.BlockedBy = []v1alpha2.Blocker{{Reason: v1alpha2.ReasonPaused, Message: `spec.paused blocks: Deployment "web"`}}
	object.Status.Certificates = []v1alpha2.Certificate{{SecretName: "cert", NotAfter: ago(26 * time.Hour)}}
	return Of(object)
}

// TestMessages verifies that a golden file has each message of this package.
func TestMessages(t *testing.T) {
	golden.Messages(t, map[string]string{
		"at an unknown time": "needs an object without a time, which the API server sets",
	}, "testdata/well.txt", "testdata/rolled-back.txt", "testdata/paused.txt", "testdata/new.txt", "testdata/editor.txt")
}

// TestRender verifies the trees, of which the documentation shows the healthy one.
func TestRender(t *testing.T) {
	page, err := os.ReadFile("../../../docs/guide/kubectl-nginx.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, report := range map[string]Report{
		"well": well(), "rolled-back": rolledBack(), "paused": pausedAndExpired(), "editor": ofEditor(),
		"new": Of(&v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 1}}),
	} {
		t.Run(name, func(t *testing.T) {
			var plain, colored bytes.Buffer
			if err := Render(&plain, report, printer.Painter{}, now); err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", name+".txt"), plain.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := fs.ReadFile(os.DirFS("testdata"), name+".txt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), plain.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if name == "well" && !strings.Contains(string(page), "$ kubectl nginx status web\n"+plain.String()+"```\n") {
				t.Error("docs/guide/kubectl-nginx.md does not show testdata/well.txt")
			}
			if err := Render(printer.NewWriter(&colored), report, printer.Painter{On: true}, now); err != nil {
				t.Fatal(err)
			}
			text := colored.String()
			for _, code := range []string{printer.Red, printer.Green, printer.Yellow, printer.Cyan, printer.Bold, "0"} {
				text = strings.ReplaceAll(text, "\x1b["+code+"m", "")
			}
			if diff := cmp.Diff(plain.String(), text); diff != "" || text == colored.String() {
				t.Errorf("colors change more than colors, or there are none:\n%s", diff)
			}
		})
	}
}
