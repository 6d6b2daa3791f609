package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// failurePolicy Ignore: nothing depends on the defaults being stored.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-v1alpha1-sidecarset,mutating=true,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1,name=default.sidecarsets.apps.kruise.io,admissionReviewVersions=v1

// handleDefault answers with the defaults of a SidecarSet and its two hashes.
func handleDefault(_ context.Context, request admission.Request) admission.Response {
	set := &v1alpha1.SidecarSet{}
	if err := json.Unmarshal(request.Object.Raw, set); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("failed to read the object: %w", err))
	}
	after := set.DeepCopy()
	setDefaults(after)
	return difference(set, after)
}

// setDefaults fills in what Kubernetes has defaults for, and notes the hashes, so that users can compare them with those
// on the Pods. A SidecarSet that is being deleted stays as it is.
func setDefaults(set *v1alpha1.SidecarSet) {
	if set.DeletionTimestamp != nil {
		return
	}
	sidecar.Default(&set.Spec)
	hashes := sidecar.HashesOf(&set.Spec)
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[sidecar.AnnotationHash] = hashes.All
	set.Annotations[sidecar.AnnotationHashWithoutImage] = hashes.WithoutImage
}

// failurePolicy Ignore: the injection and the controller ask for the same again.
//
// +kubebuilder:webhook:path=/validate-apps-kruise-io-v1alpha1-sidecarset,mutating=false,failurePolicy=ignore,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1,name=validate.sidecarsets.apps.kruise.io,admissionReviewVersions=v1

// Validator refuses a SidecarSet that could not be injected, or whose injection would make the API server refuse Pods.
type Validator struct{}

var _ admission.Validator[*v1alpha1.SidecarSet] = Validator{}

// ValidateCreate validates a new object.
func (Validator) ValidateCreate(_ context.Context, set *v1alpha1.SidecarSet) (admission.Warnings, error) {
	return nil, validate(set)
}

// ValidateUpdate validates a changed object. Whoever labels an object, or lets it go, is not held up by what was stored
// before.
func (Validator) ValidateUpdate(_ context.Context, old, set *v1alpha1.SidecarSet) (admission.Warnings, error) {
	if set.DeletionTimestamp != nil || equality.Semantic.DeepEqual(old.Spec, set.Spec) {
		return nil, nil
	}
	return nil, validate(set)
}

// ValidateDelete admits every deletion; the API server does not even ask.
func (Validator) ValidateDelete(context.Context, *v1alpha1.SidecarSet) (admission.Warnings, error) {
	return nil, nil
}

func validate(set *v1alpha1.SidecarSet) error {
	if errs := sidecar.Validate(set); len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("SidecarSet").GroupKind(), set.Name, errs)
	}
	return nil
}
