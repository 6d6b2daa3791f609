package live

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/objectcache"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
)

// randomState returns a random container state.
func randomState(random *rand.Rand) corev1.ContainerState {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	switch random.IntN(3) {
	case 0:
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	case 1:
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  pick("ContainerCreating", "ErrImagePull", "CreateContainerConfigError", "CrashLoopBackOff"),
			Message: pick("", "not found", `secret "a" not found`, "failed to sync secret cache: timed out waiting for the condition"),
		}}
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: random.Int32N(2), Reason: pick("Error", "OOMKilled"), Message: pick("", "line\nlast", `[emerg] 1#1: unknown directive "a"`),
	}}
}

func randomPod(random *rand.Rand) *corev1.Pod {
	status := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{
			Name: name, Image: fixture.Image, Ready: random.IntN(2) == 0, Started: ptr.To(random.IntN(2) == 0), RestartCount: random.Int32N(4),
			State: randomState(random), LastTerminationState: randomState(random), ImageID: "sha256:0",
		}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", Labels: wellknown.PodLabels("web"),
			Annotations: map[string]string{wellknown.AnnotationServicePorts: "http=80", "theirs": "1"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{Name: "exporter", Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9113}}},
				{Name: wellknown.OperandContainer, Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}},
			},
		},
		Status: corev1.PodStatus{
			Phase:                 corev1.PodRunning,
			InitContainerStatuses: []corev1.ContainerStatus{status("make")},
			ContainerStatuses:     []corev1.ContainerStatus{status(wellknown.OperandContainer), status("exporter")},
		},
	}
	if random.IntN(2) == 0 {
		pod.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}}}
	}
	if random.IntN(4) == 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "no room",
		}}
	}
	return pod
}

// TestReadsOfStrippedObjects verifies that a reconcile gets the same results from a complete
// object, as the plugin reads it, and from the stripped object in the operator's cache.
func TestReadsOfStrippedObjects(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test, to be repeated
		same := func(what string, whole, stripped any) {
			t.Helper()
			if diff := gocmp.Diff(whole, stripped, gocmp.AllowUnexported(operand.Replicas{})); diff != "" {
				t.Fatalf("seed %d: %s (-whole +stripped):\n%s", seed, what, diff)
			}
		}

		pod := randomPod(random)
		kept := stripped(t, pod)
		same("the failure of a Pod", health.PodFailure(pod), health.PodFailure(kept))
		ports := operand.ContainerPortsOf
		same("the ports of a Pod", ports(pod.Annotations, &pod.Spec), ports(kept.Annotations, &kept.Spec))
		same("whether a Pod has ended", health.HasEnded(pod), health.HasEnded(kept))

		object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) { s.Replicas = ptr.To(random.Int32N(3)) })
		deployment := fixture.NewDeployment(random.Int32N(5), func(d *appsv1.Deployment) {
			d.Annotations = map[string]string{wellknown.AnnotationReplicas: []string{"2", "2=4", "replicas=2,generation=3", "x"}[random.IntN(4)]}
			d.Status.ReadyReplicas = random.Int32N(5)
		})
		small := stripped(t, deployment)
		same("the number of Pods", operand.ReplicasOf(object, deployment), operand.ReplicasOf(object, small))
		same("the rollout", health.ProgressOf(deployment), health.ProgressOf(small))

		replicaSet := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(random.Int32N(2)), Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
		}}
		slim := stripped(t, replicaSet)
		same("whether a ReplicaSet wants Pods", health.WantsPods(replicaSet), health.WantsPods(slim))
		if whole, kept := &replicaSet.Spec.Template, cached.TemplateOf(slim); health.WantsPods(replicaSet) {
			same("the ports of a ReplicaSet", ports(whole.Annotations, &whole.Spec), ports(kept.Annotations, &kept.Spec))
		}
	}
}

// filesReplicaSet returns a ReplicaSet of the instance that mounts the operator's copy of files,
// after as many volumes as a spec may have.
func filesReplicaSet(configMap string) *appsv1.ReplicaSet {
	projected := func(volume string, names ...string) corev1.Volume {
		out := &corev1.ProjectedVolumeSource{}
		for _, name := range names {
			out.Sources = append(out.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: name},
			}})
		}
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{Projected: out}}
	}
	replicaSet := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-h", Labels: wellknown.PodLabels("web")}}
	for i := range 16 {
		var names []string
		for j := range 16 {
			names = append(names, fmt.Sprintf("theirs-%d-%d", i, j))
		}
		replicaSet.Spec.Template.Spec.Volumes = append(replicaSet.Spec.Template.Spec.Volumes, projected(fmt.Sprintf("volume-%d", i), names...))
	}
	replicaSet.Spec.Template.Spec.Volumes = append(replicaSet.Spec.Template.Spec.Volumes, projected("files", configMap))
	return replicaSet
}

// TestMountedConfigMapIsNotStale verifies that a ConfigMap is not stale if a ReplicaSet mounts it
// in a projected volume. Otherwise the plugin, which reads whole objects, would report a deletion
// that does not happen, and the operator would delete a ConfigMap that running Pods mount.
func TestMountedConfigMapIsNotStale(t *testing.T) {
	object := fixture.NewObject()
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-0123456789", Labels: wellknown.ChildLabels("web", fixture.Image),
		CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
		OwnerReferences:   []metav1.OwnerReference{{Kind: "NginxOperator", Name: "web", UID: object.UID, Controller: ptr.To(true)}},
	}}
	unmounted := copied.DeepCopy()
	unmounted.Name = "web-9876543210"
	whole := filesReplicaSet(copied.Name)
	for name, replicaSet := range map[string]*appsv1.ReplicaSet{"the plugin": whole, "the operator": stripped(t, whole)} {
		t.Run(name, func(t *testing.T) {
			byInstance := func(child client.Object) []string { return []string{child.GetLabels()[wellknown.LabelInstance]} }
			builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(copied, unmounted, replicaSet)
			kinds := []client.Object{
				&appsv1.ControllerRevision{}, &appsv1.ReplicaSet{}, &corev1.ConfigMap{}, &policyv1.PodDisruptionBudget{}, &corev1.Pod{},
			}
			for _, kind := range kinds {
				builder.WithIndex(kind, cached.InstanceIndex, byInstance)
			}
			state, err := Read(t.Context(), builder.Build(), object, nil)
			if err != nil {
				t.Fatal(err)
			}
			stale, err := state.Stale(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if len(stale) != 1 || stale[0].GetName() != unmounted.Name {
				t.Errorf("%d children are stale, want only %s", len(stale), unmounted.Name)
			}
		})
	}
}

// stripped returns an object as the operator's cache stores it.
func stripped[T client.Object](t *testing.T, object T) T {
	t.Helper()
	for kind, by := range objectcache.CacheOptions().ByObject {
		if fmt.Sprintf("%T", kind) == fmt.Sprintf("%T", object) {
			out, err := by.Transform(object.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			return out.(T)
		}
	}
	t.Fatalf("the cache has no %T", object)
	return object
}
