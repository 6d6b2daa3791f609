package webhook

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
	"github.com/example/nginx-operator/examples/test/sample"
)

func TestDefaults(t *testing.T) {
	set := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	want := set.DeepCopy()
	want.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
	want.Spec.Containers[0].TerminationMessagePath = "/dev/termination-log"
	want.Spec.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageReadFile
	hashes := sidecar.HashesOf(&set.Spec)
	want.Annotations = map[string]string{"kruise.io/sidecarset-hash": hashes.All, "kruise.io/sidecarset-hash-without-image": hashes.WithoutImage}
	setDefaults(set)
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	if response := handleDefault(t.Context(), creation(t, "", raw)); !response.Allowed || len(response.Patches) != 0 {
		t.Errorf("with defaults already, it answers %+v", response)
	}

	leaving := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	before := leaving.DeepCopy()
	if setDefaults(leaving); !cmp.Equal(before, leaving) {
		t.Errorf("changed an object that is being deleted:\n%s", cmp.Diff(before, leaving))
	}
}

func TestDefaultOfNothing(t *testing.T) {
	if response := handleDefault(t.Context(), creation(t, "", []byte("{"))); response.Allowed || response.Result.Code != 400 {
		t.Errorf("got %+v", response)
	}
}

func TestValidator(t *testing.T) {
	valid := sample.Read[v1alpha1.SidecarSet](t, "../sample/sidecarset.yaml")
	if _, err := (Validator{}).ValidateCreate(t.Context(), valid); err != nil {
		t.Errorf("the sample is refused: %v", err)
	}
	bad := valid.DeepCopy()
	bad.Spec.Containers[0].Image = ""
	_, err := Validator{}.ValidateCreate(t.Context(), bad)
	const want = `SidecarSet.apps.kruise.io "test-sidecarset" is invalid: spec.containers[0].image: Required value: a sidecar has no image of its own; write for example busybox:1.36`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if _, err := (Validator{}).ValidateUpdate(t.Context(), valid, bad); !apierrors.IsInvalid(err) {
		t.Errorf("a change is not validated: %v", err)
	}
	labelled := bad.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	if _, err := (Validator{}).ValidateUpdate(t.Context(), bad, labelled); err != nil {
		t.Errorf("whoever labels an object is held up by what was stored: %v", err)
	}
	leaving := bad.DeepCopy()
	leaving.DeletionTimestamp = ptr.To(metav1.Now())
	if _, err := (Validator{}).ValidateUpdate(t.Context(), valid, leaving); err != nil {
		t.Errorf("whoever lets an object go is held up: %v", err)
	}
	if _, err := (Validator{}).ValidateDelete(t.Context(), bad); err != nil {
		t.Error(err)
	}
}
