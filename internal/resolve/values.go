package resolve

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/pkg/reference"
)

// value is the conclusion about a key of a ConfigMap with a value of spec.config.values.
type value struct {
	keyed
	text string
}

// readValues returns the values of spec.config.values, and adds the reasons why one cannot be used.
func (r Resolver) readValues(ctx context.Context, object *v1alpha2.NginxOperator, to *resolution) (nginxconf.Values, error) {
	if object.Spec.Config == nil || len(object.Spec.Config.Values) == 0 {
		return nil, nil
	}

	values := nginxconf.Literals(&object.Spec)
	fields := map[string]string{"metadata.namespace": object.Namespace, "metadata.name": object.Name}
	for i, declared := range object.Spec.Config.Values {
		from := declared.ValueFrom
		if from != nil && from.FieldRef != nil {
			values[declared.Name] = nginxconf.Value{Text: fields[from.FieldRef.FieldPath]}
		}
		if from == nil || from.ConfigMapKeyRef == nil {
			continue
		}

		name, key := from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key
		source := &corev1.ConfigMap{ObjectMeta: referenced(object, name)}
		found, exists, err := reference.Derive(ctx, r.ConfigMaps, "value "+key+" "+declared.Name, source, func() value {
			text, hasKey := source.Data[key]
			text = strings.TrimSuffix(text, "\n")
			if hasKey && !nginxconf.CanBeForeign(text) {
				return value{keyed: keyed{refused: fmt.Sprintf("has a key %q that cannot be the value of %s: it must have 1 to %d bytes, "+
					"and neither $ nor control characters; correct it", key, declared.Name, nginxconf.MaxValue)}}
			}
			return value{keyed{exists: hasKey}, text}
		})
		if err != nil {
			return nil, err
		}

		at := operand.SpecPath.Child("config", "values").Index(i).Child("valueFrom", "configMapKeyRef")
		to.blockMissing(at, "ConfigMap", name, key, exists, found.keyed)
		values[declared.Name] = nginxconf.Value{Text: found.text, Foreign: true}
	}

	return values, nil
}
