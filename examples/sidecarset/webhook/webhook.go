// Package webhook admits SidecarSets and injects their sidecars into Pods.
package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// The webhooks of SidecarSets. No SidecarSet is stored without them, because an invalid sidecar
// makes the API server reject Pods.
//
// +kubebuilder:webhook:path=/mutate-apps-kruise-io-v1alpha1-sidecarset,mutating=true,failurePolicy=fail,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1,name=default.sidecarsets.apps.kruise.io,admissionReviewVersions=v1
// +kubebuilder:webhook:path=/validate-apps-kruise-io-v1alpha1-sidecarset,mutating=false,failurePolicy=fail,matchPolicy=Exact,sideEffects=None,timeoutSeconds=5,groups=apps.kruise.io,resources=sidecarsets,verbs=create;update,versions=v1alpha1,name=validate.sidecarsets.apps.kruise.io,admissionReviewVersions=v1
// +kubebuilder:rbac:groups="",namespace=system,resources=podtemplates,verbs=create

// Setup adds the webhooks to a manager that runs in a namespace.
func Setup(mgr ctrl.Manager, namespace string) error {
	handler := &SidecarSets{Client: mgr.GetClient(), Namespace: namespace}
	if err := ctrl.NewWebhookManagedBy(mgr, &v1alpha1.SidecarSet{}).WithDefaulter(handler).WithValidator(handler).Complete(); err != nil {
		return fmt.Errorf("failed to set up the webhooks of SidecarSets: %w", err)
	}
	mgr.GetWebhookServer().Register(pathPod, &admission.Webhook{
		Handler: &Pods{Reader: mgr.GetClient(), Namespace: namespace},
		// A recovered panic would reject the Pod. Without a response, the Pod is created
		// (failurePolicy Ignore).
		RecoverPanic: ptr.To(false),
	})
	return nil
}

// SidecarSets defaults and validates SidecarSets. Only the API server knows the rules and the
// defaults of containers. So the webhook sends a dry run of a PodTemplate, which, unlike a Pod, is
// not subject to quotas and Pod Security.
type SidecarSets struct {
	Client    client.Client
	Namespace string // the operator's own
}

// Default sets the defaults of the API server and records that it accepted the spec. It does not
// reject invalid specs, which the schema and the validation reject.
func (s *SidecarSets) Default(ctx context.Context, set *v1alpha1.SidecarSet) error {
	template, err := s.dryRun(ctx, set)
	switch {
	case apierrors.IsInvalid(err), set.Spec.Selector == nil:
		return nil
	case err == nil:
		set.Spec.Containers, set.Spec.Volumes = template.Spec.Containers, template.Spec.Volumes
		sidecar.Admit(set)
	}
	return err
}

// ValidateCreate validates a new SidecarSet.
func (s *SidecarSets) ValidateCreate(ctx context.Context, set *v1alpha1.SidecarSet) (admission.Warnings, error) {
	path, options := field.NewPath("spec"), metav1validation.LabelSelectorValidationOptions{}
	errs := metav1validation.ValidateLabelSelector(set.Spec.Selector, options, path.Child("selector"))
	for i, container := range set.Spec.Containers {
		// The API server rejects white space only in Pods, not in templates.
		if strings.ContainsFunc(container.Image, unicode.IsSpace) {
			errs = append(errs, field.Invalid(path.Child("containers").Index(i).Child("image"), container.Image, "must not contain white space"))
		}
	}
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind("SidecarSet").GroupKind(), set.Name, errs)
	}
	_, err := s.dryRun(ctx, set)
	var refused *apierrors.StatusError
	if apierrors.IsInvalid(err) && errors.As(err, &refused) {
		_, problems, _ := strings.Cut(refused.ErrStatus.Message, " is invalid: ")
		refused.ErrStatus.Message = fmt.Sprintf("SidecarSet %q is invalid: %s", set.Name, strings.ReplaceAll(problems, "template.spec.", "spec."))
		refused.ErrStatus.Details = nil
	}
	return nil, err
}

// ValidateUpdate validates a changed spec.
func (s *SidecarSets) ValidateUpdate(ctx context.Context, old, set *v1alpha1.SidecarSet) (admission.Warnings, error) {
	if equality.Semantic.DeepEqual(old.Spec, set.Spec) {
		return nil, nil
	}
	return s.ValidateCreate(ctx, set)
}

// ValidateDelete is not called.
func (s *SidecarSets) ValidateDelete(context.Context, *v1alpha1.SidecarSet) (admission.Warnings, error) {
	return nil, nil
}

func (s *SidecarSets) dryRun(ctx context.Context, set *v1alpha1.SidecarSet) (corev1.PodTemplateSpec, error) {
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, GenerateName: "sidecarset-"}}
	template.Template.Spec.Containers, template.Template.Spec.Volumes = set.Spec.Containers, set.Spec.Volumes
	err := s.Client.Create(ctx, template, client.DryRunAll, client.DisableReadYourWritesConsistency)
	return template.Template, err
}

// A webhook for Pods can block a cluster, because the recovery of a cluster needs Pods. So this
// webhook is called only for new Pods. It excludes the namespaces of Kubernetes and of the
// operators, and Namespaces and Pods that opt out. If it does not respond within two seconds, the
// Pod is created without sidecars.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,matchPolicy=Equivalent,reinvocationPolicy=IfNeeded,sideEffects=None,timeoutSeconds=2,groups="",resources=pods,verbs=create,versions=v1,name=inject.sidecarsets.apps.kruise.io,admissionReviewVersions=v1,serviceName=webhook-service,serviceNamespace=system,patch=`{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system","kube-public","kube-node-lease","nginx-operator-system","nginx-operator-examples-system"]},{"key":"kruise.io/sidecarset-injection","operator":"NotIn","values":["disabled"]}]},"objectSelector":{"matchExpressions":[{"key":"kruise.io/sidecarset-injection","operator":"NotIn","values":["disabled"]}]}}`

const pathPod = "/mutate--v1-pod"

// Pods injects sidecars into new Pods.
type Pods struct {
	Reader    client.Reader
	Namespace string // the operator's own
}

// Handle returns the patch that adds the sidecars. It never rejects a Pod. After an error, the
// client that creates the Pod gets a warning.
func (p *Pods) Handle(ctx context.Context, request admission.Request) admission.Response {
	if slices.Contains([]string{"kube-system", "kube-public", "kube-node-lease", p.Namespace}, request.Namespace) {
		return admission.Allowed("")
	}
	response, err := p.inject(ctx, request.Object.Raw)
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to inject sidecars")
		return admission.Allowed("").WithWarnings("no sidecars are injected: " + err.Error())
	}
	return response
}

func (p *Pods) inject(ctx context.Context, raw []byte) (admission.Response, error) {
	pod, sets := &corev1.Pod{}, &v1alpha1.SidecarSetList{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return admission.Response{}, fmt.Errorf("failed to read the Pod: %w", err)
	}
	if err := p.Reader.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return admission.Response{}, fmt.Errorf("failed to list SidecarSets: %w", err)
	}
	injected, warnings := sidecar.Inject(pod, sets.Items)
	if equality.Semantic.DeepEqual(pod, injected) {
		return admission.Allowed("").WithWarnings(warnings...), nil
	}
	// Both are encoded from the Go type, so that the patch preserves fields that the type does not
	// know.
	before, beforeErr := json.Marshal(pod)
	after, afterErr := json.Marshal(injected)
	response := admission.PatchResponseFromRaw(before, after)
	if err := errors.Join(beforeErr, afterErr); err != nil {
		return admission.Response{}, fmt.Errorf("failed to encode the Pod: %w", err)
	}
	if response.Result != nil && response.Result.Code != http.StatusOK {
		return admission.Response{}, fmt.Errorf("failed to make the patch: %s", response.Result.Message)
	}
	return response.WithWarnings(warnings...), nil
}
