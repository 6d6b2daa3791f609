package controller

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/internal/metadata"
)

// OperatorName is the value of the label app.kubernetes.io/managed-by on the Deployments, and the name in Events.
const OperatorName = "myapp-operator"

// appName is the value of the label app, and the container's name.
const appName = "myapp"

// desiredDeployment returns the Deployment of a MyApp: its name and namespace, one container of its image, and as many
// replicas as it declares.
func desiredDeployment(app *v1alpha1.MyApp) *appsv1.Deployment {
	labels := selector(app.Name)
	labels[metadata.LabelManagedBy] = OperatorName
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name, Namespace: app.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(replicas(app)),
			Selector: &metav1.LabelSelector{MatchLabels: selector(app.Name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector(app.Name)},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: appName, Image: app.Spec.Image}}},
			},
		},
	}
}

// selector returns the labels of the Pods of one MyApp. The document has only app=myapp; with that alone two MyApps of a
// namespace would fight over each other's Pods.
func selector(name string) map[string]string {
	return map[string]string{"app": appName, metadata.LabelInstance: name}
}

func replicas(app *v1alpha1.MyApp) int32 {
	return ptr.Deref(app.Spec.Replicas, v1alpha1.DefaultReplicas)
}
