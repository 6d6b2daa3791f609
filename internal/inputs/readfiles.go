package inputs

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/operand"
)

// named returns an empty object with a name, in the namespace of the NginxOperator.
func named[T any, P interface {
	*T
	client.Object
}](object *v1alpha2.NginxOperator, name string) P {
	out := P(new(T))
	out.SetNamespace(object.Namespace)
	out.SetName(name)
	return out
}

// ReadFiles returns a function that reads the files of resolved inputs. Files that an earlier
// reconcile read are read again, because only their hash is remembered. The function returns a
// conflict if they have changed since.
func (r Resolver) ReadFiles(object *v1alpha2.NginxOperator, in operand.Inputs) func(context.Context) (operand.Files, error) {
	return func(ctx context.Context) (operand.Files, error) {
		out := operand.Files{Config: in.Config.Files}
		if out.Config == nil {
			source, err := r.readConfigMap(ctx, object, object.Spec.Config.ConfigMapRef.Name)
			if err != nil {
				return operand.Files{}, err
			}
			found, _ := r.render(object, source.Data[defaults.ConfigKey(object.Spec.Config.ConfigMapRef)])
			if err := sameHash(source, found.Hash, in.Config.Hash); err != nil {
				return operand.Files{}, err
			}
			out.Config = found.Files
		}
		if in.Content != nil {
			found := *in.Content
			if found.Text == nil && found.Binary == nil {
				source, err := r.readConfigMap(ctx, object, object.Spec.Content.ConfigMapRef.Name)
				if err != nil {
					return operand.Files{}, err
				}
				found = operand.NewContent(source)
				if err := sameHash(source, found.Hash, in.Content.Hash); err != nil {
					return operand.Files{}, err
				}
			}
			out.Text, out.Binary = found.Text, found.Binary
		}
		if in.Files != nil {
			found, err := r.readDeclaredFiles(ctx, object, in)
			if err != nil {
				return operand.Files{}, err
			}
			out.FileText, out.FileBinary = found.Text, found.Binary
		}
		return out, nil
	}
}

// readConfigMap reads a ConfigMap. It returns a conflict if the ConfigMap no longer exists.
func (r Resolver) readConfigMap(ctx context.Context, object *v1alpha2.NginxOperator, name string) (*corev1.ConfigMap, error) {
	source := named[corev1.ConfigMap](object, name)
	found, err := r.ConfigMaps.Read(ctx, source)
	if err == nil && !found {
		err = changedSince(source)
	}
	return source, err
}

// sameHash returns a conflict if two hashes differ.
func sameHash(source *corev1.ConfigMap, now, before string) error {
	if now != before {
		return changedSince(source)
	}
	return nil
}

// changedSince returns the conflict for content that has changed since its hash was computed. The
// reconcile is repeated.
func changedSince(source *corev1.ConfigMap) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), source.Name, errors.New("it has changed since it was looked at"))
}
