package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
	"github.com/example/nginx-operator/examples/sidecarset/sidecar"
)

// A webhook for Pods can stop a cluster: what would bring it back needs Pods. So this one is asked for as few as possible,
// for two seconds at most, and where it does not answer the Pod is created as it is. It is not asked for the namespaces of
// Kubernetes and of the operators, nor where the label kruise.io/sidecarset-injection=disabled is on the Namespace or the
// Pod; and only for the creation of a Pod. It is asked again when a later webhook changed the Pod.
//
// +kubebuilder:webhook:path=/mutate--v1-pod,mutating=true,failurePolicy=ignore,matchPolicy=Equivalent,reinvocationPolicy=IfNeeded,sideEffects=None,timeoutSeconds=2,groups="",resources=pods,verbs=create,versions=v1,name=inject.sidecarsets.apps.kruise.io,admissionReviewVersions=v1,serviceName=webhook-service,serviceNamespace=system,patch=`{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system","kube-public","kube-node-lease","nginx-operator-system","nginx-operator-examples-system"]},{"key":"kruise.io/sidecarset-injection","operator":"NotIn","values":["disabled"]}]},"objectSelector":{"matchExpressions":[{"key":"kruise.io/sidecarset-injection","operator":"NotIn","values":["disabled"]}]}}`

// Injector gives Pods their sidecars.
type Injector struct {
	// Reader reads SidecarSets from the cache.
	Reader client.Reader
	// Namespace is the operator's own, "" outside of a cluster.
	Namespace string
}

var _ admission.Handler = &Injector{}

// Handle answers with the patch that adds the sidecars. It never refuses a Pod: what goes wrong here is no reason not to
// create it, and failurePolicy does not help where there is an answer. Its creator gets a warning instead.
func (i *Injector) Handle(ctx context.Context, request admission.Request) admission.Response {
	if sidecar.ExcludedNamespace(request.Namespace, i.Namespace) {
		return admission.Allowed("")
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(request.Object.Raw, pod); err != nil {
		return untouched(ctx, fmt.Errorf("failed to read the Pod: %w", err))
	}
	sets := &v1alpha1.SidecarSetList{}
	if err := i.Reader.List(ctx, sets, client.UnsafeDisableDeepCopy); err != nil {
		return untouched(ctx, fmt.Errorf("failed to list SidecarSets: %w", err))
	}
	injected, warnings := sidecar.Inject(pod, sets.Items)
	response := difference(pod, injected)
	if response.Result != nil && response.Result.Code != http.StatusOK {
		return untouched(ctx, fmt.Errorf("failed to write the Pod: %s", response.Result.Message))
	}
	return response.WithWarnings(warnings...)
}

// untouched lets a Pod be created as it is.
func untouched(ctx context.Context, err error) admission.Response {
	log.FromContext(ctx).Error(err, "Failed to inject sidecars")
	return admission.Allowed("").WithWarnings("no sidecars are injected: " + err.Error())
}

// difference answers with what differs between two states of an object and nothing else. Both are written from the Go type:
// compared with the text that the client sent, quantities would differ ("500m" for "0.5") that nobody changed.
func difference(before, after client.Object) admission.Response {
	if equality.Semantic.DeepEqual(before, after) {
		return admission.Allowed("")
	}
	var raw [2][]byte
	for i, state := range []client.Object{before, after} {
		var err error
		if raw[i], err = json.Marshal(state); err != nil {
			return admission.Errored(http.StatusInternalServerError, fmt.Errorf("failed to write the object: %w", err))
		}
	}
	return admission.PatchResponseFromRaw(raw[0], raw[1])
}
