package nginxoperator

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/fleet"
	"github.com/example/nginx-operator/internal/health"
	"github.com/example/nginx-operator/internal/metrics"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/pkg/apply"
	"github.com/example/nginx-operator/pkg/reference"
)

// process runs complete reconciles of one object. The storage is controller-runtime's fake client,
// with the UIDs, creation times, and generations that an API server assigns. In a test, rollOut
// replaces the Deployment controller.
type process struct {
	*testing.T
	client.WithWatch
	reconciler *Reconciler
	// refuse returns the error for a write of an object, or nil if the write is accepted.
	refuse func(client.Object) error
	// stop is called during a write of the status, after the storage has it. A request whose
	// context is canceled by then fails, as with an HTTP client.
	stop func()
	// writes has the verbs and kinds of the writes.
	writes []string
	// revision is the number of the newest ReplicaSet.
	revision int
}

var instance = types.NamespacedName{Namespace: "shop", Name: "web"}

func newProcess(t *testing.T, change ...func(*v1alpha2.NginxOperatorSpec)) *process {
	t.Helper()
	scheme := scheme.New()
	p := &process{T: t, refuse: func(client.Object) error { return nil }, stop: func() {}}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha2.NginxOperator{})
	for _, kind := range []client.Object{
		&appsv1.ControllerRevision{}, &corev1.ConfigMap{}, &policyv1.PodDisruptionBudget{}, &appsv1.ReplicaSet{}, &corev1.Pod{},
	} {
		builder.WithIndex(kind, cached.InstanceIndex, func(object client.Object) []string {
			return []string{object.GetLabels()[wellknown.LabelInstance]}
		})
	}
	p.WithWatch = builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: p.create, Patch: p.patch, SubResourcePatch: p.patchStatus,
	}).Build()

	p.reconciler = &Reconciler{
		Client:     p,
		Applier:    NewApplier(p, p, func(string, apply.Verb) {}),
		Recorder:   events.NewFakeRecorder(1000),
		Metrics:    metrics.New(prometheus.NewRegistry(), noInstances),
		ConfigMaps: reference.NewDirect(corev1.SchemeGroupVersion.WithResource("configmaps"), p),
		Secrets:    reference.NewDirect(corev1.SchemeGroupVersion.WithResource("secrets"), p),
		Missing:    map[string]string{"HTTPRoute": "not installed", "PodMonitor": "not installed", "PrometheusRule": "not installed"},
		Fleet:      fleet.New(fleet.Policy{}),
		Release: operand.Release{
			Image: fixture.Image, ExporterImage: fixture.ExporterImage, Nameservers: []string{"10.96.0.10"},
		},
	}

	object := fixture.NewObject(change...)
	object.UID, object.Generation = "", 1
	p.make(object)
	p.reconcile()
	return p
}

func (p *process) create(ctx context.Context, to client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if err := p.refuse(object); err != nil {
		return err
	}
	p.writes = append(p.writes, fmt.Sprintf("create %T", object))
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.Now())
	object.SetGeneration(1)
	return to.Create(ctx, object, options...)
}

func (p *process) patch(
	ctx context.Context, to client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption,
) error {
	if err := p.refuse(object); err != nil {
		return err
	}
	if dryRun := (&client.PatchOptions{}).ApplyOptions(options).DryRun; len(dryRun) > 0 {
		return to.Patch(ctx, object, patch, options...)
	}
	p.writes = append(p.writes, fmt.Sprintf("patch %T", object))
	before := object.DeepCopyObject().(client.Object)
	if err := to.Get(ctx, client.ObjectKeyFromObject(object), before); err != nil {
		return err
	}
	if err := to.Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	old, isDeployment := before.(*appsv1.Deployment)
	if !isDeployment {
		return nil
	}
	now := object.(*appsv1.Deployment)
	if equality.Semantic.DeepEqual(old.Spec, now.Spec) && equality.Semantic.DeepEqual(old.Annotations, now.Annotations) {
		return nil
	}
	now.Generation++
	return to.Update(ctx, now)
}

func (p *process) patchStatus(
	ctx context.Context, to client.Client, _ string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
) error {
	if err := to.Status().Patch(ctx, object, patch, options...); err != nil {
		return err
	}
	p.stop()
	return ctx.Err()
}

func (p *process) make(object client.Object) {
	p.Helper()
	if err := p.Create(p.Context(), object); err != nil {
		p.Fatal(err)
	}
}

// read returns the object with a name.
func read[T any, P interface {
	*T
	client.Object
}](p *process, name string) P {
	p.Helper()
	out := P(new(T))
	if err := p.Get(p.Context(), client.ObjectKey{Namespace: instance.Namespace, Name: name}, out); err != nil {
		p.Fatal(err)
	}
	return out
}

// edit changes the spec like a user, and reconciles.
func (p *process) edit(change func(*v1alpha2.NginxOperatorSpec)) {
	p.Helper()
	object := p.object()
	change(&object.Spec)
	object.Generation++
	if err := p.Update(p.Context(), object); err != nil {
		p.Fatal(err)
	}
	p.reconcile()
}

func (p *process) object() *v1alpha2.NginxOperator {
	return read[v1alpha2.NginxOperator](p, instance.Name)
}
func (p *process) deployment() *appsv1.Deployment       { return read[appsv1.Deployment](p, instance.Name) }
func (p *process) status() v1alpha2.NginxOperatorStatus { return p.object().Status }
func (p *process) condition(of string) *metav1.Condition {
	return meta.FindStatusCondition(p.status().Conditions, of)
}
func (p *process) image() string { return p.deployment().Spec.Template.Spec.Containers[0].Image }

// reconcile reconciles until no reconcile requests another one within a second.
func (p *process) reconcile() {
	p.Helper()
	reconciler := apply.AsReconciler(p.WithWatch, p.reconciler, p.reconciler.forget)
	for range 20 {
		result, err := reconciler.Reconcile(p.Context(), reconcile.Request{NamespacedName: instance})
		if err != nil {
			p.Log("reconcile: ", err)
		}
		again := result.Requeue || result.RequeueAfter > 0 && result.RequeueAfter < time.Second //nolint:staticcheck // see Reconcile
		if err != nil || !again {
			return
		}
	}
	p.Fatal("the reconciles do not end")
}

// rollOut replaces the Deployment controller: it creates Pods of the newest ReplicaSet with a
// status, reports them in the Deployment, and reconciles.
func (p *process) rollOut(status corev1.PodStatus, change ...func(*appsv1.Deployment)) {
	p.Helper()
	deployment := p.deployment()
	set := p.replicaSet(deployment)
	if err := p.DeleteAllOf(p.Context(), &corev1.Pod{}, client.InNamespace(instance.Namespace)); err != nil {
		p.Fatal(err)
	}
	replicas, ready := ptr.Deref(deployment.Spec.Replicas, 1), int32(0)
	for i := range replicas {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: instance.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, i), Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))},
		}, Spec: set.Spec.Template.Spec, Status: status}
		p.make(pod)
		pod.Status = status
		if err := p.Status().Update(p.Context(), pod); err != nil {
			p.Fatal(err)
		}
		if health.IsReady(pod) {
			ready++
		}
	}
	progress := appsv1.DeploymentCondition{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated"}
	if ready == replicas {
		progress.Reason = "NewReplicaSetAvailable"
	}
	progress.LastUpdateTime = metav1.Now()
	deployment.Annotations[wellknown.AnnotationRevision] = fmt.Sprint(p.revision)
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: ready,
		AvailableReplicas: ready, Conditions: []appsv1.DeploymentCondition{progress},
	}
	for _, f := range change {
		f(deployment)
	}
	reported := deployment.Status
	if err := p.Update(p.Context(), deployment); err != nil {
		p.Fatal(err)
	}
	deployment.Status = reported
	if err := p.Status().Update(p.Context(), deployment); err != nil {
		p.Fatal(err)
	}
	p.reconcile()
}

// replicaSet returns the ReplicaSet of the Deployment's Pod template. It creates the ReplicaSet if
// it does not exist.
func (p *process) replicaSet(deployment *appsv1.Deployment) *appsv1.ReplicaSet {
	p.Helper()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment.Spec.Template)
	if err != nil {
		p.Fatal(err)
	}
	set := &appsv1.ReplicaSet{}
	set.Namespace, set.Name = instance.Namespace, "web-"+operand.ShortHash(fmt.Sprint(raw))
	p.revision++
	if err := p.Get(p.Context(), client.ObjectKeyFromObject(set), set); err != nil {
		set.Labels = deployment.Spec.Template.Labels
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		set.Spec = appsv1.ReplicaSetSpec{Replicas: deployment.Spec.Replicas, Template: deployment.Spec.Template}
		p.make(set)
	}
	set.Annotations = maps.Clone(deployment.Annotations)
	set.Annotations[wellknown.AnnotationRevision] = fmt.Sprint(p.revision)
	if err := p.Update(p.Context(), set); err != nil {
		p.Fatal(err)
	}
	return set
}

var (
	podReady    = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	podCrashing = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "nginx", RestartCount: 5,
		State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 139, Reason: "Error"}},
	}}}
	podPulling = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "nginx", Image: "nginx:other",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "i/o timeout"}},
	}}}
)

// isStalled reports in the Deployment that its progress deadline was exceeded.
func isStalled(deployment *appsv1.Deployment) {
	progress := &deployment.Status.Conditions[0]
	progress.Status, progress.Reason = corev1.ConditionFalse, "ProgressDeadlineExceeded"
}

// noInstances is the list of a replica that does not lead.
func noInstances(context.Context) ([]v1alpha2.NginxOperator, bool) { return nil, false }
