// Package deployments runs the same scripts on the Deployment controller of the simulation
// (test/simulation/kube) and on that of Kubernetes, and compares what they leave: ReplicaSets with
// their annotations, and the status of the Deployment.
//
// It has an API server of its own, because the controllers would also work for the Deployments of
// other tests. KUBEBUILDER_ASSETS has its programs.
package deployments

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/internal/scheme"
	"github.com/example/nginx-operator/test/harness"
	"github.com/example/nginx-operator/test/harness/apiserver"
	"github.com/example/nginx-operator/test/simulation/kube"
	"github.com/example/nginx-operator/test/simulation/storage"
)

const (
	// bad is an image whose Pods never become ready.
	bad = "example.com/bad:1"
	// annotationNote is an annotation of the Deployment, which its ReplicaSets get.
	annotationNote = "example.com/note"
	// shortDeadline is a progress deadline in seconds that passes during a script.
	shortDeadline = 3
	// modelPatience is longer than all delays of the model in a script, and shorter than the usual
	// progress deadline.
	modelPatience = 30 * time.Second
	patience      = 2 * time.Minute
)

// change is a step of a script.
type change func(*appsv1.Deployment)

// rollOut changes the template, and the note as the operator does.
func rollOut(image string) change {
	return func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = image
		note(image)(d)
	}
}

func note(text string) change {
	return func(d *appsv1.Deployment) { metav1.SetMetaDataAnnotation(&d.ObjectMeta, annotationNote, text) }
}

func scale(replicas int32) change {
	return func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(replicas) }
}

func pause(paused bool) change { return func(d *appsv1.Deployment) { d.Spec.Paused = paused } }

func deadline(seconds int32) change {
	return func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// attempt sets the strategy with which the operator attempts a change again.
func attempt(d *appsv1.Deployment) {
	d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
		MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1)),
	}
}

func both(changes ...change) change {
	return func(d *appsv1.Deployment) {
		for _, step := range changes {
			step(d)
		}
	}
}

// scripts are the steps after the creation of a Deployment of image a with three replicas and two
// old revisions.
var scripts = map[string][]change{
	"rollouts and undo":       {rollOut("b"), rollOut("c"), rollOut("b"), rollOut("a"), rollOut("c")},
	"pruning":                 {rollOut("b"), rollOut("c"), rollOut("d"), rollOut("e"), pause(true), rollOut("f"), pause(false)},
	"pruning while it rolls":  {rollOut("b"), rollOut("c"), rollOut(bad), rollOut("d"), rollOut("e")},
	"a pause":                 {pause(true), rollOut("b"), scale(5), rollOut("c"), pause(false)},
	"a pause of a rollout":    {rollOut(bad), pause(true), rollOut("b"), scale(1), pause(false)},
	"a failure and its retry": {both(rollOut(bad), deadline(shortDeadline)), rollOut("a"), both(rollOut(bad), attempt), rollOut("b")},
	"a failure while paused": {
		both(rollOut(bad), deadline(shortDeadline), pause(true)), pause(false), pause(true), rollOut("a"), pause(false),
	},
	"a scaled rollout":         {rollOut(bad), scale(7), scale(2), rollOut("b")},
	"no replicas":              {scale(0), rollOut("b"), rollOut("c"), scale(2), both(rollOut("a"), scale(0))},
	"annotations without Pods": {note("again"), rollOut("b")},
}

// TestDeploymentController runs each script on the model first, and waits until the real controller
// leaves the same after each step.
func TestDeploymentController(t *testing.T) {
	dir := t.TempDir()
	server := harness.Must1(apiserver.Start(dir, harness.OperatorUser))(t)
	t.Cleanup(func() { harness.Must(t, server.Stop()) })
	binary := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager")
	manager := harness.Must1(harness.StartControllerManager(t.Context(), binary, server.AdminKubeconfig, dir,
		"deployment-controller", "replicaset-controller"))(t)
	t.Cleanup(manager.Stop)
	server.Admin.QPS = -1
	admin := harness.Must1(client.New(server.Admin, client.Options{Scheme: scheme.New()}))(t)
	t.Run("scripts", func(t *testing.T) {
		for name, script := range scripts {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				want := onModel(t, script)
				namespace := strings.ReplaceAll(strings.ToLower(name), " ", "-")
				compare(t, admin, namespace, script, want)
			})
		}
	})
}

// onModel returns what the model leaves after the creation and after each step.
func onModel(t *testing.T, script []change) (left []outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := storage.New()
		cluster := kube.New(store)
		cluster.Faults.Unpullable = map[string]string{bad: "ErrImagePull"}
		api := harness.Must1(client.New(storage.Config(storage.Direct(store)), client.Options{Scheme: scheme.New(), Mapper: storage.Mapper()}))(t)
		settle := func() {
			for end := time.Now().Add(modelPatience); ; {
				for cluster.Tick() {
				}
				next := cluster.Next()
				if next.IsZero() || next.After(end) {
					return
				}
				time.Sleep(time.Until(next))
			}
		}
		harness.Must(t, create(t.Context(), api, "shop"))
		settle()
		left = append(left, harness.Must1(outcomeOf(t.Context(), api, "shop"))(t))
		for _, step := range script {
			harness.Must(t, apply(t.Context(), api, "shop", step))
			settle()
			left = append(left, harness.Must1(outcomeOf(t.Context(), api, "shop"))(t))
		}
	})
	return left
}

// compare runs a script on the real controller.
func compare(t *testing.T, api client.Client, namespace string, script []change, want []outcome) {
	t.Helper()
	harness.Must(t, create(t.Context(), api, namespace))
	for i := range want {
		if i > 0 {
			harness.Must(t, apply(t.Context(), api, namespace, script[i-1]))
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := harness.Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
			if err := startPods(ctx, api, namespace); err != nil {
				return err
			}
			got, err := outcomeOf(ctx, api, namespace)
			if err != nil {
				return err
			}
			if diff := gocmp.Diff(want[i], got); diff != "" {
				return fmt.Errorf("step %d (-model +controller):\n%s", i, diff)
			}
			return nil
		})
		cancel()
		harness.Must(t, err)
	}
}

// startPods makes the Pods of all other images ready. There is no kubelet.
func startPods(ctx context.Context, api client.Client, namespace string) error {
	pods := &corev1.PodList{}
	if err := api.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.Containers[0].Image == bad || pod.Status.Phase == corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
		if err := api.Status().Update(ctx, pod); !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// create creates a namespace with a Deployment.
func create(ctx context.Context, api client.Client, namespace string) error {
	labels := map[string]string{"app": "web"}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}
	deployment.Spec.Replicas, deployment.Spec.RevisionHistoryLimit = ptr.To[int32](3), ptr.To[int32](2)
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "nginx"}}
	rollOut("a")(deployment)
	return errors.Join(api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}), api.Create(ctx, deployment))
}

func apply(ctx context.Context, api client.Client, namespace string, step change) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		deployment := &appsv1.Deployment{}
		if err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, deployment); err != nil {
			return err
		}
		step(deployment)
		return api.Update(ctx, deployment)
	})
}

// outcome is what a step leaves.
type outcome struct {
	Observed, Paused                             bool
	Annotations                                  map[string]string
	Replicas, Updated, Ready, Available, Missing int32
	Conditions                                   []string
	ReplicaSets                                  []replicaSet
}

type replicaSet struct {
	Image           string
	Replicas, Ready int32
	Annotations     map[string]string
}

func outcomeOf(ctx context.Context, api client.Client, namespace string) (outcome, error) {
	deployment, sets := &appsv1.Deployment{}, &appsv1.ReplicaSetList{}
	err := errors.Join(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, deployment),
		api.List(ctx, sets, client.InNamespace(namespace)))
	status := deployment.Status
	out := outcome{
		Observed: status.ObservedGeneration == deployment.Generation, Paused: deployment.Spec.Paused, Annotations: deployment.Annotations,
		Replicas: status.Replicas, Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		Missing: status.UnavailableReplicas,
	}
	for _, condition := range status.Conditions {
		// The controller of Kubernetes writes the second reason only if it sees the ReplicaSet before
		// its last Pod. On a busy machine it may not.
		reason := strings.ReplaceAll(condition.Reason, "NewReplicaSetCreated", "ReplicaSetUpdated")
		out.Conditions = append(out.Conditions, fmt.Sprintf("%s %s %s", condition.Type, condition.Status, reason))
	}
	slices.Sort(out.Conditions)
	for i := range sets.Items {
		set := &sets.Items[i]
		out.ReplicaSets = append(out.ReplicaSets, replicaSet{
			set.Spec.Template.Spec.Containers[0].Image, *set.Spec.Replicas, set.Status.ReadyReplicas, set.Annotations,
		})
	}
	slices.SortFunc(out.ReplicaSets, func(a, b replicaSet) int { return cmp.Compare(a.Image, b.Image) })
	return out, err
}
