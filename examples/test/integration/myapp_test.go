package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
)

// newMyApp returns the MyApp of the document.
func newMyApp(namespace string) *v1alpha1.MyApp {
	return &v1alpha1.MyApp{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "myapp-sample"},
		Spec:       v1alpha1.MyAppSpec{Replicas: ptr.To[int32](3), Image: "myapp:latest"},
	}
}

// waitForDeployment waits until the Deployment of a MyApp has so many replicas of an image, and returns it.
func waitForDeployment(t *testing.T, app *v1alpha1.MyApp, replicas int32, image string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(app), deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; *deployment.Spec.Replicas != replicas || got != image {
			return fmt.Errorf("the Deployment has %d replicas of %s, want %d of %s", *deployment.Spec.Replicas, got, replicas, image)
		}
		return nil
	})
	return deployment
}

// rollOut writes the status that the Deployment controller writes when all replicas are ready.
func rollOut(t *testing.T, deployment *appsv1.Deployment) {
	t.Helper()
	n := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	must(t, suite.admin.Status().Update(t.Context(), deployment))
}

// waitForReady waits until the status speaks of the current generation and Ready has this reason.
func waitForReady(t *testing.T, app *v1alpha1.MyApp, reason string) {
	t.Helper()
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); err != nil {
			return err
		}
		found := meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady)
		if app.Status.ObservedGeneration != app.Generation || found == nil || found.Reason != reason {
			return fmt.Errorf("want Ready with the reason %s of generation %d, got %+v", reason, app.Generation, app.Status)
		}
		return nil
	})
}

// The document, step by step; the test plays the Deployment controller. That the Deployment goes with the MyApp is the
// garbage collector's work, by the reference that is looked at here.
func TestMyAppWalkThrough(t *testing.T) {
	namespace := newNamespace(t)
	app := newMyApp(namespace)
	create(t, app)
	deployment := waitForDeployment(t, app, 3, "myapp:latest")
	if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != app.UID || owner.Kind != "MyApp" {
		t.Errorf("the Deployment's controller is %+v", owner)
	}
	rollOut(t, deployment)
	waitForReady(t, app, v1alpha1.ReasonAllReplicasReady)
	if app.Status.Replicas != 3 || app.Status.ReadyReplicas != 3 {
		t.Errorf("status %+v", app.Status)
	}
	shown := columns(t, "/apis/example.com/v1alpha1/namespaces/"+namespace+"/myapps/myapp-sample")
	delete(shown, "Age")
	if diff := cmp.Diff(map[string]any{"Name": "myapp-sample", "Replicas": float64(3), "Image": "myapp:latest"}, shown); diff != "" {
		t.Errorf("kubectl get shows (-want +got):\n%s", diff)
	}

	update(t, app, func(app *v1alpha1.MyApp) { app.Spec.Replicas = ptr.To[int32](5) })
	rollOut(t, waitForDeployment(t, app, 5, "myapp:latest"))
	waitForReady(t, app, v1alpha1.ReasonAllReplicasReady)
	update(t, app, func(app *v1alpha1.MyApp) { app.Spec.Image = "myapp:next" })
	waitForDeployment(t, app, 5, "myapp:next")

	must(t, suite.admin.Delete(t.Context(), app))
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(app), app); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the MyApp is still there: %w", err)
		}
		return nil
	})
}

// kubectl scale works, in both directions: it reads the replicas and the selector, and sets the replicas.
func TestMyAppScale(t *testing.T) {
	app := newMyApp(newNamespace(t))
	create(t, app)
	rollOut(t, waitForDeployment(t, app, 3, "myapp:latest"))
	waitForReady(t, app, v1alpha1.ReasonAllReplicasReady)
	scale := &autoscalingv1.Scale{}
	must(t, suite.admin.SubResource("scale").Get(t.Context(), app, scale))
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 || scale.Status.Selector != "app=myapp,app.kubernetes.io/instance=myapp-sample" {
		t.Errorf("the scale is %+v, %+v", scale.Spec, scale.Status)
	}
	scale.Spec.Replicas = 2
	must(t, suite.admin.SubResource("scale").Update(t.Context(), app, client.WithSubResourceBody(scale)))
	waitForDeployment(t, app, 2, "myapp:latest")
}

// Who changes what the MyApp declares is undone, who deletes the Deployment gets another one, and what others added stays.
func TestMyAppDrift(t *testing.T) {
	app := newMyApp(newNamespace(t))
	create(t, app)
	deployment := waitForDeployment(t, app, 3, "myapp:latest")
	update(t, deployment, func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.Containers[0].Image = "other:1"
		d.Annotations["note"] = "of others"
	})
	if repaired := waitForDeployment(t, app, 3, "myapp:latest"); repaired.Annotations["note"] != "of others" {
		t.Errorf("the annotations are %v", repaired.Annotations)
	}
	remove(t, deployment)
	if again := waitForDeployment(t, app, 3, "myapp:latest"); again.UID == deployment.UID {
		t.Error("the Deployment was not deleted")
	}
}

// A Deployment of that name that somebody else made is left as it is. The status says so, and an Event.
func TestMyAppNameConflict(t *testing.T) {
	app := newMyApp(newNamespace(t))
	labels := map[string]string{"of": "others"}
	taken := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	taken.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	taken.Spec.Template.Labels = labels
	taken.Spec.Template.Spec = newPod("", "").Spec
	create(t, taken, app)
	waitForReady(t, app, v1alpha1.ReasonNameConflict)
	if after := read(t, taken.DeepCopy()); after.Generation != taken.Generation {
		t.Error("somebody else's Deployment was changed")
	}
	waitForEvents(t, app, `Warning NameConflict Deployment "myapp-sample" exists already and is not ours (nobody controls it): delete or rename it, or choose another name`)
}

// At rest nothing is written: not by noise of the Deployment's status, and not by a start of the operator.
func TestMyAppAtRest(t *testing.T) {
	namespace := newNamespace(t)
	app := newMyApp(namespace)
	create(t, app)
	deployment := waitForDeployment(t, app, 3, "myapp:latest")
	rollOut(t, deployment)
	waitForReady(t, app, v1alpha1.ReasonAllReplicasReady)
	settled(t, "myapp")
	before := len(audit(t, namespace, ""))
	deployment.Status.CollisionCount = ptr.To[int32](1)
	must(t, suite.admin.Status().Update(t.Context(), deployment))
	settled(t, "myapp")
	suite.operator.Stop()
	restart(t)
	settled(t, "myapp")
	if requests := audit(t, namespace, "")[before:]; len(requests) > 0 {
		t.Errorf("at rest it asked for %+v", requests)
	}
}
