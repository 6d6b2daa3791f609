package migrate

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

type dependents struct {
	// podLabels are the labels of the Pods of the workload, and serviceLabels those of its Service.
	podLabels, serviceLabels map[string]string
	// kind and name are those of the workload, and service is the name of its converted Service.
	kind, name, service string
}

// notConverted are the kinds of objects of a workload that the NginxOperator replaces or that need a
// change. The other kinds, for example ConfigMaps, stay as they are.
var notConverted = map[string]struct {
	advice    string
	belongsTo func(object map[string]any, workload dependents) bool
}{
	"Service": {
		"it selects the Pods, too, and spec.service describes one Service; create it yourself with the selector of the new Pods",
		selectsPods("selector"),
	},
	"HorizontalPodAutoscaler": {"it scales the old workload; use spec.autoscaling", scales},
	"ScaledObject":            {"it scales the old workload; let it scale the NginxOperator instead", scales},
	"VerticalPodAutoscaler":   {"it changes the old workload; let it change the NginxOperator instead", scales},
	"PodDisruptionBudget":     {"the operator creates one for two or more replicas", selectsPods("selector")},
	"PodMonitor":              {"use spec.monitoring", selectsPods("selector")},
	"ServiceMonitor":          {"use spec.monitoring", selectsService},
	"NetworkPolicy":           {"use spec.networkPolicy.from for the peers of its ingress rules", selectsPods("podSelector")},
	"Ingress":                 {"it routes to the old Service; use spec.expose.ingress", routes},
	"HTTPRoute":               {"it routes to the old Service; use spec.expose.httpRoute", routes},
}

func (r *Result) others(workload dependents) {
	for _, manifest := range r.manifests {
		kind, isKnown := notConverted[manifest.GetKind()]
		isConverted := manifest.GetKind() == "Service" && manifest.GetName() == workload.service
		if !isKnown || isConverted || manifest.GetNamespace() != r.Object.Namespace || !kind.belongsTo(manifest.Object, workload) {
			continue
		}

		path := manifest.GetKind() + " " + manifest.GetName()
		r.Lost = append(r.Lost, path+": "+kind.advice)
		if manifest.GetKind() == "NetworkPolicy" && limitsEgress(manifest.Object) {
			r.Lost = append(r.Lost, fmt.Sprintf("%s.spec.egress: the operator's NetworkPolicy has no egress rules; move them to a NetworkPolicy "+
				"of your own that selects app.kubernetes.io/instance: %s", path, r.Object.Name))
		}
	}
}

func selectsPods(field string) func(map[string]any, dependents) bool {
	return func(object map[string]any, workload dependents) bool {
		return selects(object, field, workload.podLabels)
	}
}

func selectsService(object map[string]any, workload dependents) bool {
	return selects(object, "selector", workload.serviceLabels)
}

// selects reports whether the selector in a field of spec selects an object with these labels. An
// empty selector selects all objects, also those of the NginxOperator.
func selects(object map[string]any, field string, set labels.Set) bool {
	if simple, isSet, err := unstructured.NestedStringMap(object, "spec", field); err == nil && isSet { // of a Service
		return len(simple) > 0 && labels.SelectorFromSet(simple).Matches(set)
	}

	value, _, _ := unstructured.NestedMap(object, "spec", field)
	decoded := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(value, decoded); err != nil {
		return false
	}

	selector, err := metav1.LabelSelectorAsSelector(decoded)
	return err == nil && !selector.Empty() && selector.Matches(set)
}

func scales(object map[string]any, workload dependents) bool {
	return slices.ContainsFunc([]string{"scaleTargetRef", "targetRef"}, func(field string) bool {
		target, _, _ := unstructured.NestedMap(object, "spec", field)
		kind, isSet := target["kind"]
		return target["name"] == workload.name && (kind == workload.kind || !isSet)
	})
}

func routes(object map[string]any, workload dependents) bool {
	return workload.service != "" && names(object["spec"], workload.service)
}

func names(value any, name string) bool {
	switch value := value.(type) {
	case map[string]any:
		return value["name"] == name || names(slices.Collect(maps.Values(value)), name)
	case []any:
		return slices.ContainsFunc(value, func(inner any) bool { return names(inner, name) })
	}
	return false
}

// limitsEgress reports whether a NetworkPolicy limits egress. An empty rule allows all.
func limitsEgress(policy map[string]any) bool {
	rules, hasRules, _ := unstructured.NestedSlice(policy, "spec", "egress")
	types, _, _ := unstructured.NestedStringSlice(policy, "spec", "policyTypes")
	allowsAll := slices.ContainsFunc(rules, func(rule any) bool {
		fields, isMap := rule.(map[string]any)
		return isMap && len(fields) == 0
	})

	return (hasRules || slices.Contains(types, "Egress")) && !allowsAll
}
