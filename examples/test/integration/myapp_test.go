package integration

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// newMyApp creates the sample MyApp of the source document in its own namespace, and returns it
// with its Deployment.
func newMyApp(t *testing.T) (*v1alpha1.MyApp, *appsv1.Deployment) {
	t.Helper()
	app := sample(t, "myapp/sample/myapp.yaml", &v1alpha1.MyApp{}, newNamespace(t), "myapp-sample")
	create(t, app)
	return app, waitForDeployment(t, app, 3, "myapp:latest")
}

// waitForDeployment waits until the Deployment of a MyApp has n replicas of an image, and reports
// them as ready.
func waitForDeployment(t *testing.T, app *v1alpha1.MyApp, n int32, image string) *appsv1.Deployment {
	t.Helper()
	deployment := &appsv1.Deployment{}
	waitFor(t, func() error {
		if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(app), deployment); err != nil {
			return err
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; *deployment.Spec.Replicas != n || got != image {
			return fmt.Errorf("the Deployment has %d replicas of %s, want %d of %s", *deployment.Spec.Replicas, got, n, image)
		}
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		}
		return suite.admin.Status().Update(t.Context(), deployment)
	})
	waitForReady(t, app, v1alpha1.ReasonAllReplicasReady)
	return deployment
}

// waitForReady waits until the condition Ready has a reason for the current generation.
func waitForReady(t *testing.T, app *v1alpha1.MyApp, reason string) {
	t.Helper()
	waitUntil(t, &app.Status, func() bool {
		found := meta.FindStatusCondition(read(t, app).Status.Conditions, v1alpha1.ConditionReady)
		return app.Status.ObservedGeneration == app.Generation && found != nil && found.Reason == reason
	})
}

// TestMyAppDrift checks that the scale subresource works and has the selector of the Pods, that
// drift is corrected, that a deleted Deployment is recreated, and that fields of other clients are
// preserved. The garbage collector needs the owner reference to delete the Deployment.
func TestMyAppDrift(t *testing.T) {
	app, deployment := newMyApp(t)
	uid, scale := deployment.UID, &autoscalingv1.Scale{}
	if owner := metav1.GetControllerOf(deployment); owner == nil || owner.UID != app.UID || owner.Kind != "MyApp" {
		t.Errorf("the Deployment's controller is %+v", owner)
	}
	must(t, suite.admin.SubResource("scale").Get(t.Context(), app, scale))
	if scale.Spec.Replicas != 3 || scale.Status.Replicas != 3 || scale.Status.Selector != "app=myapp,app.kubernetes.io/instance=myapp-sample" {
		t.Errorf("the scale is %+v, %+v", scale.Spec, scale.Status)
	}
	scale.Spec.Replicas = 2
	must(t, suite.admin.SubResource("scale").Update(t.Context(), app, client.WithSubResourceBody(scale)))
	waitForDeployment(t, app, 2, "myapp:latest")
	update(t, app, func(app *v1alpha1.MyApp) { app.Spec.Image = "myapp:next" })
	waitForDeployment(t, app, 2, "myapp:next")
	update(t, deployment, func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](1)
		d.Spec.Template.Spec.Containers[0].Image = "other:1"
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "note", "of others")
		d.Labels = nil
	})
	corrected := waitForDeployment(t, app, 2, "myapp:next")
	if corrected.Annotations["note"] != "of others" || corrected.Labels["app.kubernetes.io/managed-by"] == "" {
		t.Errorf("the metadata is %+v", corrected.ObjectMeta)
	}
	remove(t, deployment)
	if again := waitForDeployment(t, app, 2, "myapp:next"); again.UID == uid {
		t.Error("the Deployment was not deleted")
	}
}

// TestMyAppNameConflict checks that a Deployment of the same name that the MyApp does not control
// remains unchanged. The status and an Event report the conflict.
func TestMyAppNameConflict(t *testing.T) {
	taken := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t), Name: "taken"}}
	taken.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"of": "others"}}
	taken.Spec.Template.Labels, taken.Spec.Template.Spec = taken.Spec.Selector.MatchLabels, newPod("", "").Spec
	app := &v1alpha1.MyApp{ObjectMeta: metav1.ObjectMeta{Namespace: taken.Namespace, Name: "taken"}, Spec: v1alpha1.MyAppSpec{Image: "i"}}
	create(t, taken, app)
	waitForReady(t, app, v1alpha1.ReasonNameConflict)
	if after := read(t, taken.DeepCopy()); after.ResourceVersion != taken.ResourceVersion {
		t.Error("somebody else's Deployment was changed")
	}
	waitForEvents(t, app, "Warning NameConflict "+meta.FindStatusCondition(app.Status.Conditions, v1alpha1.ConditionReady).Message)
}

// TestMyAppSteadyState checks that nothing is written in the steady state, not even after a
// restart.
func TestMyAppSteadyState(t *testing.T) {
	app, deployment := newMyApp(t)
	writes := func() int {
		settled(t, "myapp")
		return len(audit(t, func(r apiserver.Request) bool { return r.ObjectRef.Namespace == app.Namespace && r.IsWrite() }))
	}
	before := writes()
	read(t, deployment).Status.CollisionCount = ptr.To[int32](1)
	must(t, suite.admin.Status().Update(t.Context(), deployment))
	if n := writes() - before; n > 0 {
		t.Errorf("%d writes in the steady state", n)
	}
	suite.operator.Stop()
	must(t, startOperator())
	if n := writes() - before; n > 0 {
		t.Errorf("%d writes after a start", n)
	}
}
