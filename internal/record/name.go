package record

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/operand"
)

// desiredRevision returns the record of a declaration without its data. Replicas, autoscaling,
// paused, and rollout are not part of its name: they do not change the Pod template, and apply to
// whichever declaration is applied.
func desiredRevision(object *v1alpha2.NginxOperator, in operand.Inputs) (*appsv1.ControllerRevision, error) {
	identity, err := recordIdentity(object, in)
	if err != nil {
		return nil, err
	}
	out := &appsv1.ControllerRevision{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ControllerRevision"},
		ObjectMeta: operand.ObjectMeta(object, in),
		Revision:   object.Generation,
	}
	out.Name = Name(object, identity)
	return out, nil
}

// Name returns the name of the record of an object for the end of the name.
func Name(object *v1alpha2.NginxOperator, identity string) string {
	return object.Name + "-" + identity
}

// recordIdentity returns the end of the name of a declaration's record. A name from an older
// release stays in use while the status has it. So an upgrade neither retries a change that was
// rolled back nor promotes another revision.
func recordIdentity(object *v1alpha2.NginxOperator, in operand.Inputs) (string, error) {
	kept := DataOf(object, in)
	older, err := kept.identityOfOlderRelease()
	if err != nil {
		return "", err
	}
	name := Name(object, older)
	if good := object.Status.LastGoodRevision; good != nil && good.Revision == name || HasFailed(&object.Status, name) {
		return older, nil
	}
	return kept.identity()
}

// identity returns the end of the name of a record.
func (kept Data) identity() (string, error) {
	kept.Spec.Rollout = nil
	return kept.identityOfOlderRelease()
}

// identityOfOlderRelease returns the end of the name that releases up to 0.5.1 gave a record. They
// wrote no records while spec.paused was set.
func (kept Data) identityOfOlderRelease() (string, error) {
	kept.Files, kept.Spec.Replicas, kept.Spec.Autoscaling, kept.Spec.Paused = nil, nil, nil, false
	raw, err := json.Marshal(kept)
	if err != nil {
		return "", fmt.Errorf("failed to encode revision: %w", err)
	}
	return operand.ShortHash(string(raw)), nil
}
