package nginxoperator

import (
	"context"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/apply"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/reference"
)

// Indexes of the cached NginxOperators by the names of the ConfigMaps and Secrets that they name.
const (
	configMapIndex = "configMap"
	secretIndex    = "secret"
)

// indexReferences adds the indexes to a cache.
func indexReferences(ctx context.Context, indexer client.FieldIndexer) error {
	for index, names := range map[string]func(*v1alpha2.NginxOperatorSpec) []string{
		configMapIndex: namedConfigMaps,
		secretIndex:    namedSecrets,
	} {
		err := indexer.IndexField(ctx, &v1alpha2.NginxOperator{}, index, func(object client.Object) []string {
			return names(&object.(*v1alpha2.NginxOperator).Spec)
		})
		if err != nil {
			return fmt.Errorf("failed to index NginxOperators by %s: %w", index, err)
		}
	}
	return nil
}

func namedConfigMaps(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	if spec.Config != nil && spec.Config.ConfigMapRef != nil {
		out = append(out, spec.Config.ConfigMapRef.Name)
	}
	if spec.Content != nil {
		out = append(out, spec.Content.ConfigMapRef.Name)
	}
	for _, file := range spec.Files {
		if file.ConfigMapRef != nil {
			out = append(out, file.ConfigMapRef.Name)
		}
	}
	return out
}

func namedSecrets(spec *v1alpha2.NginxOperatorSpec) []string {
	var out []string
	for _, tls := range spec.TLS {
		out = append(out, tls.SecretName)
	}
	for _, file := range spec.Files {
		if file.SecretRef != nil {
			out = append(out, file.SecretRef.Name)
		}
	}
	return out
}

// referrers returns the function that finds the objects which name another, by an index.
func (r *Reconciler) referrers(index string) reference.Referrers {
	return func(ctx context.Context, key types.NamespacedName) []reconcile.Request {
		list := &v1alpha2.NginxOperatorList{}
		err := r.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingFields{index: key.Name},
			client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to find who names an object", "index", index, "name", key)
			return nil
		}
		var out []reconcile.Request
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return out
	}
}

// named returns an empty object of a name in the namespace of the NginxOperator, to be read.
func named[T any, P interface {
	*T
	client.Object
}](object *v1alpha2.NginxOperator, name string) P {
	out := P(new(T))
	out.SetNamespace(object.Namespace)
	out.SetName(name)
	return out
}

// fill returns the function that adds to children, before they are created, the files that their declarations leave out.
func fill(object *v1alpha2.NginxOperator, in inputs, read func(context.Context) (files, error)) apply.Fill {
	var found files
	have := false
	once := func(ctx context.Context) (err error) {
		if !have {
			found, err = read(ctx)
			have = err == nil
		}
		return err
	}
	return func(ctx context.Context, child client.Object) error {
		switch child := child.(type) {
		case *corev1.ConfigMap:
			if child.Data != nil || child.BinaryData != nil {
				return nil
			}
			if err := once(ctx); err != nil {
				return err
			}
			// Others make their copies of the same.
			switch child.Name {
			case contentName(object, in):
				child.Data, child.BinaryData = maps.Clone(found.Text), maps.Clone(found.Binary)
			case filesName(object, in):
				child.Data, child.BinaryData = maps.Clone(found.FileText), maps.Clone(found.FileBinary)
			default:
				child.Data = found.Config
			}
		case *appsv1.ControllerRevision:
			err := once(ctx)
			if err == nil {
				child.Data.Raw, err = revisionOf(object, in).encode(found)
			}
			return err
		}
		return nil
	}
}

// readFiles returns the function that reads the files of a declaration. Of what was read in an earlier reconcile only a hash is
// remembered, so it is read again.
func (r *Reconciler) readFiles(object *v1alpha2.NginxOperator, in inputs) func(context.Context) (files, error) {
	return func(ctx context.Context) (files, error) {
		out := files{Config: in.config.files}
		if out.Config == nil {
			source, err := r.readConfigMap(ctx, object, object.Spec.Config.ConfigMapRef.Name)
			if err != nil {
				return files{}, err
			}
			found, _ := r.render(object, source.Data[defaults.ConfigKey(object.Spec.Config.ConfigMapRef)])
			if err := sameHash(source, found.hash, in.config.hash); err != nil {
				return files{}, err
			}
			out.Config = found.files
		}
		if in.content != nil {
			found := *in.content
			if found.text == nil && found.binary == nil {
				source, err := r.readConfigMap(ctx, object, object.Spec.Content.ConfigMapRef.Name)
				if err != nil {
					return files{}, err
				}
				found = newContent(source)
				if err := sameHash(source, found.hash, in.content.hash); err != nil {
					return files{}, err
				}
			}
			out.Text, out.Binary = found.text, found.binary
		}
		if in.files != nil {
			found, err := r.readDeclaredFiles(ctx, object, in)
			if err != nil {
				return files{}, err
			}
			out.FileText, out.FileBinary = found.text, found.binary
		}
		return out, nil
	}
}

func (r *Reconciler) readConfigMap(ctx context.Context, object *v1alpha2.NginxOperator, name string) (*corev1.ConfigMap, error) {
	source := named[corev1.ConfigMap](object, name)
	found, err := r.ConfigMaps.Read(ctx, source)
	if err == nil && !found {
		err = changedSince(source)
	}
	return source, err
}

func sameHash(source *corev1.ConfigMap, now, before string) error {
	if now != before {
		return changedSince(source)
	}
	return nil
}

// changedSince is the error for content that is not the one which was looked at: the reconcile is made again.
func changedSince(source *corev1.ConfigMap) error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), source.Name, errors.New("it has changed since it was looked at"))
}
