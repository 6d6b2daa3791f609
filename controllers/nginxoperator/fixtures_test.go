package nginxoperator

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// update makes the golden files anew: go test ./controllers/nginxoperator -update
var update = flag.Bool("update", false, "write golden files")

const (
	testImage    = "docker.io/nginxinc/nginx-unprivileged:1.28.0"
	testExporter = "docker.io/nginx/nginx-prometheus-exporter:1.5.1"
)

// golden compares a text with the file of that name in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.Base(name))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // a file of testdata
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// newObject returns an object as the API server stores it: with the defaults of the schema.
func newObject(change ...func(*v1alpha2.NginxOperatorSpec)) *v1alpha2.NginxOperator {
	object := &v1alpha2.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u-1", Generation: 3},
		Spec:       v1alpha2.NginxOperatorSpec{Replicas: ptr.To(v1alpha2.DefaultReplicas)},
	}
	for _, f := range change {
		f(&object.Spec)
	}
	return object
}

// onPort returns a change of a spec to one port, as v1alpha1 declares it.
func onPort(port int32) func(*v1alpha2.NginxOperatorSpec) {
	return func(s *v1alpha2.NginxOperatorSpec) {
		s.Ports = []v1alpha2.Port{{Name: v1alpha2.DefaultPortName, Port: port, Protocol: corev1.ProtocolTCP}}
	}
}

// newInputs returns what a reconcile reads for an object that names nothing, or whose configuration is given here.
func newInputs(t *testing.T, object *v1alpha2.NginxOperator, servers string, ipv6 bool) inputs {
	t.Helper()
	config, blockers := (&Reconciler{IPv6: ipv6}).render(object, servers)
	if len(blockers) > 0 {
		t.Fatal(blockers)
	}
	in := (&Reconciler{Image: testImage, ExporterImage: testExporter}).newInputs(object)
	in.config = config
	return in
}

// newDeployment returns a Deployment whose rollout of that many replicas is complete.
func newDeployment(replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: 7},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To(replicas)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 7, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		},
	}
	for _, f := range change {
		f(deployment)
	}
	return deployment
}

// newPod returns a Pod whose container is in a state.
func newPod(status corev1.ContainerStatus) *corev1.Pod {
	status.Name, status.Image = "nginx", testImage
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1"},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}
