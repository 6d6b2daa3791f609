// Package webhook is admission: what a write of a SidecarSet goes through before it is stored, and what a Pod gets when it
// is created. The handlers are thin; what they do is in package sidecar.
package webhook

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/example/nginx-operator/examples/sidecarset/api/v1alpha1"
)

// Where the webhook server answers.
const (
	PathDefault  = "/mutate-apps-kruise-io-v1alpha1-sidecarset"
	PathValidate = "/validate-apps-kruise-io-v1alpha1-sidecarset"
	PathPod      = "/mutate--v1-pod"
)

// The webhooks read SidecarSets from the manager's cache, in every replica, whether it leads or not.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=sidecarsets,verbs=list;watch

// Setup adds the webhooks to the manager's webhook server. The manager's scheme has v1alpha1.
func Setup(mgr ctrl.Manager) error {
	// A replica that does not lead has no controller that would ask for it.
	if _, err := mgr.GetCache().GetInformer(context.Background(), &v1alpha1.SidecarSet{}, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("failed to watch SidecarSets: %w", err)
	}
	server := mgr.GetWebhookServer()
	server.Register(PathDefault, &admission.Webhook{Handler: admission.HandlerFunc(handleDefault)})
	server.Register(PathValidate, admission.WithValidator(mgr.GetScheme(), Validator{}))
	server.Register(PathPod, &admission.Webhook{
		Handler: &Injector{Reader: mgr.GetCache(), Namespace: ownNamespace(os.LookupEnv, os.ReadFile)},
		// A panic that is recovered is answered with a refusal; one that is not breaks the connection, and then the Pod is
		// created (failurePolicy Ignore).
		RecoverPanic: ptr.To(false),
	})
	return nil
}

// ownNamespace returns the namespace that the operator runs in, "" outside of a cluster: what the downward API says, else
// what the kubelet mounts into every Pod.
func ownNamespace(lookupEnv func(string) (string, bool), readFile func(string) ([]byte, error)) string {
	if namespace, found := lookupEnv("POD_NAMESPACE"); found && namespace != "" {
		return namespace
	}
	raw, err := readFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
