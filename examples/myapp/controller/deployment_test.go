package controller

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/example/nginx-operator/examples/myapp/api/v1alpha1"
	"github.com/example/nginx-operator/examples/test/sample"
)

// sampleApp returns the MyApp of the document.
func sampleApp(t *testing.T) *v1alpha1.MyApp {
	t.Helper()
	app := sample.Read[v1alpha1.MyApp](t, "../sample/myapp.yaml")
	app.Namespace, app.UID, app.Generation = "default", "app-uid", 1
	return app
}

func TestDesiredDeployment(t *testing.T) {
	labels := map[string]string{"app": "myapp", "app.kubernetes.io/instance": "myapp-sample"}
	want := &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "myapp-sample", Namespace: "default", Labels: map[string]string{
			"app": "myapp", "app.kubernetes.io/instance": "myapp-sample", "app.kubernetes.io/managed-by": "myapp-operator",
		}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "myapp", Image: "myapp:latest"}}},
			},
		},
	}
	if diff := cmp.Diff(want, desiredDeployment(sampleApp(t))); diff != "" {
		t.Error(diff)
	}
}

func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		declared *int32
		want     int32
	}{
		"as declared":  {ptr.To[int32](5), 5},
		"zero is zero": {ptr.To[int32](0), 0},
		"none is one":  {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			app := sampleApp(t)
			app.Spec.Replicas = test.declared
			if got := *desiredDeployment(app).Spec.Replicas; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

// Two MyApps of one namespace never select each other's Pods.
func TestSelectorsDiffer(t *testing.T) {
	one, other := sampleApp(t), sampleApp(t)
	other.Name = "other"
	selects, err := metav1.LabelSelectorAsSelector(desiredDeployment(one).Spec.Selector)
	if err != nil {
		t.Fatal(err)
	}
	if pods := desiredDeployment(other).Spec.Template.Labels; selects.Matches(labelSet(pods)) {
		t.Errorf("%s selects the Pods of another MyApp: %v", selects, pods)
	}
}

// The columns and the scale subresource are those that the document shows: NAME, AGE, REPLICAS, IMAGE.
func TestDefinition(t *testing.T) {
	raw, err := os.ReadFile("../../config/crd/example.com_myapps.yaml")
	if err != nil {
		t.Fatal(err)
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, definition); err != nil {
		t.Fatal(err)
	}
	if names := definition.Spec.Names; names.Kind != "MyApp" || names.ListKind != "MyAppList" || names.Plural != "myapps" || names.Singular != "myapp" {
		t.Errorf("names are %+v", names)
	}
	version := definition.Spec.Versions[0]
	columns := []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		{Name: "Replicas", Type: "integer", JSONPath: ".spec.replicas"},
		{Name: "Image", Type: "string", JSONPath: ".spec.image"},
	}
	if diff := cmp.Diff(columns, version.AdditionalPrinterColumns); diff != "" {
		t.Error(diff)
	}
	subresources := &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{
			SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas", LabelSelectorPath: ptr.To(".status.selector"),
		},
	}
	if diff := cmp.Diff(subresources, version.Subresources); diff != "" {
		t.Error(diff)
	}
}
