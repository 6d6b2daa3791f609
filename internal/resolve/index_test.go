package resolve

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/cached"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/scheme"
)

// everyReference sets each field of a spec, and returns the names that reference ConfigMaps and
// Secrets. Each name is the JSON path of its field.
func everyReference(spec *v1alpha2.NginxOperatorSpec) (configMaps, secrets []string) {
	var fill func(value reflect.Value, path string)
	fill = func(value reflect.Value, path string) {
		switch value.Kind() {
		case reflect.Pointer:
			value.Set(reflect.New(value.Type().Elem()))
			fill(value.Elem(), path)
		case reflect.Slice:
			if value.Type().Elem().Kind() == reflect.Uint8 {
				return
			}
			value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			fill(value.Index(0), path)
		case reflect.Struct:
			for i := range value.NumField() {
				field := value.Type().Field(i)
				if !field.IsExported() {
					continue
				}
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				fill(value.Field(i), strings.TrimPrefix(path+"."+name, "."))
			}
		case reflect.String:
			value.SetString(path)
			field, lower := path[strings.LastIndex(path, ".")+1:], strings.ToLower(path)
			isSecret, isConfigMap := strings.Contains(lower, "secret"), strings.Contains(lower, "configmap")
			switch isName := field == "name" || field == "secretName"; {
			case isName && isSecret:
				secrets = append(secrets, path)
			case isName && isConfigMap:
				configMaps = append(configMaps, path)
			}
		}
	}
	fill(reflect.ValueOf(spec).Elem(), "")
	slices.Sort(configMaps)
	slices.Sort(secrets)
	return configMaps, secrets
}

// TestEveryReferenceIsIndexed verifies that an object is indexed by each ConfigMap and Secret that
// its spec references, so that creating a missing one starts a reconcile. The test walks the type,
// so it covers new fields.
func TestEveryReferenceIsIndexed(t *testing.T) {
	object := fixture.NewObject()
	configMaps, secrets := everyReference(&object.Spec)
	for _, known := range []string{
		"env.valueFrom.secretKeyRef.name", "volumes.secret.secretName", "sidecars.env.valueFrom.secretKeyRef.name",
		"podTemplate.imagePullSecrets.name", "tls.secretName",
	} {
		if !slices.Contains(secrets, known) {
			t.Fatalf("the test does not find spec.%s: %v", known, secrets)
		}
	}

	c := newIndexed(object)
	want := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	for index, names := range map[string][]string{ConfigMapIndex: configMaps, SecretIndex: secrets} {
		for _, name := range names {
			if got := Referrers(c, index)(t.Context(), types.NamespacedName{Namespace: object.Namespace, Name: name}); !slices.Equal(got, want) {
				t.Errorf("the object is not found by the %s of spec.%s", index, name)
			}
		}
	}
	if configMaps, secrets := referencesOf(&fixture.NewObject().Spec); len(configMaps)+len(secrets) > 0 {
		t.Errorf("an object without references is found by %v and %v", configMaps, secrets)
	}
}

// newIndexed returns a client with the indexes of the cache.
func newIndexed(objects ...client.Object) client.Client {
	builder := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...)
	for index, names := range Indexes() {
		builder.WithIndex(&v1alpha2.NginxOperator{}, index, names).WithIndex(&appsv1.Deployment{}, index, names)
	}
	return builder.Build()
}

// TestNeedsOfRunningPodsAreIndexed verifies that an object whose spec references nothing is found
// by each object that its running Pods need, also in the form of the cache. The Pods mount copies
// of some ConfigMaps.
func TestNeedsOfRunningPodsAreIndexed(t *testing.T) {
	object, before := fixture.NewObject(), fixture.NewObject()
	configMaps, secrets := everyReference(&before.Spec)
	configMaps = slices.DeleteFunc(configMaps, func(path string) bool {
		return slices.Contains([]string{
			"config.configMapRef.name", "content.configMapRef.name", "files.configMapRef.name",
			"config.values.valueFrom.configMapKeyRef.name",
		}, path)
	})
	whole := operand.DesiredDeployment(before, operand.Inputs{})
	whole.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(object, v1alpha2.GroupVersion.WithKind("NginxOperator"))}
	stored := whole.DeepCopy()
	stored.Spec.Template.Spec = cached.ReferencesOf(&whole.Spec.Template.Spec).PodSpec()
	want := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	for form, deployment := range map[string]client.Object{"whole": whole, "cached": stored} {
		c := newIndexed(object, deployment)
		for index, names := range map[string][]string{ConfigMapIndex: configMaps, SecretIndex: secrets} {
			for _, name := range names {
				key := types.NamespacedName{Namespace: object.Namespace, Name: name}
				if got := Referrers(c, index)(t.Context(), key); !slices.Equal(got, want) {
					t.Errorf("%s: the object is not found by the %s of spec.%s", form, index, name)
				}
			}
		}
	}
}

// TestReferencesAreUnique verifies that a Secret that several containers reference is in the index
// once.
func TestReferencesAreUnique(t *testing.T) {
	from := func(name string) []v1alpha2.EnvVar {
		return []v1alpha2.EnvVar{{Name: "A", ValueFrom: &v1alpha2.EnvVarSource{SecretKeyRef: &v1alpha2.KeyReference{Name: name, Key: "k"}}}}
	}
	spec := &v1alpha2.NginxOperatorSpec{
		Env: from("b"), Sidecars: []v1alpha2.Container{{Env: from("a")}}, InitContainers: []v1alpha2.Container{{Env: from("b")}},
		PodTemplate: &v1alpha2.PodTemplate{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "b"}}},
	}
	if _, secrets := referencesOf(spec); !slices.Equal(secrets, []string{"a", "b"}) {
		t.Errorf("the index has %v", secrets)
	}
}
