package validation

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// validatePodTemplate holds what the API server would refuse in the Deployment, so that it is told where it was written.
func validatePodTemplate(template *v1alpha2.PodTemplate, path *field.Path) field.ErrorList {
	if template == nil {
		return nil
	}
	errs := validateLabels(template.Labels, path.Child("labels"))
	errs = append(errs, validateAnnotations(template.Annotations, path.Child("annotations"))...)
	errs = append(errs, metav1validation.ValidateLabels(template.NodeSelector, path.Child("nodeSelector"))...)
	for i := range template.Tolerations {
		errs = append(errs, validateToleration(&template.Tolerations[i], path.Child("tolerations").Index(i))...)
	}
	errs = append(errs, validateAffinity(template.Affinity, path.Child("affinity"))...)
	errs = append(errs, validateSpread(template.TopologySpreadConstraints, path.Child("topologySpreadConstraints"))...)
	if template.PriorityClassName != "" {
		errs = append(errs, validateName(template.PriorityClassName, path.Child("priorityClassName"))...)
	}
	for i, secret := range template.ImagePullSecrets {
		errs = append(errs, validateName(secret.Name, path.Child("imagePullSecrets").Index(i).Child("name"))...)
	}
	return errs
}

func validateToleration(toleration *corev1.Toleration, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if toleration.Key != "" {
		errs = append(errs, metav1validation.ValidateLabelName(toleration.Key, path.Child("key"))...)
	} else if toleration.Operator != corev1.TolerationOpExists {
		errs = append(errs,
			field.Invalid(path.Child("operator"), toleration.Operator, "must be Exists where key is empty: that tolerates every taint"))
	}
	switch toleration.Operator {
	case corev1.TolerationOpEqual, "":
		for _, message := range utilvalidation.IsValidLabelValue(toleration.Value) {
			errs = append(errs, field.Invalid(path.Child("value"), toleration.Value, message))
		}
	case corev1.TolerationOpExists:
		if toleration.Value != "" {
			errs = append(errs,
				field.Invalid(path.Child("value"), toleration.Value, "must be empty with the operator Exists; remove it or use Equal"))
		}
	case corev1.TolerationOpGt, corev1.TolerationOpLt:
		// Whether a cluster knows them depends on its version.
	default:
		errs = append(errs, field.NotSupported(path.Child("operator"), toleration.Operator,
			[]corev1.TolerationOperator{corev1.TolerationOpEqual, corev1.TolerationOpExists}))
	}
	switch toleration.Effect {
	case "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		errs = append(errs, field.NotSupported(path.Child("effect"), toleration.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	if toleration.TolerationSeconds != nil && toleration.Effect != corev1.TaintEffectNoExecute {
		errs = append(errs, field.Invalid(path.Child("effect"), toleration.Effect, "must be NoExecute where tolerationSeconds is given"))
	}
	return errs
}

func validateAffinity(affinity *corev1.Affinity, path *field.Path) field.ErrorList {
	if affinity == nil {
		return nil
	}
	var errs field.ErrorList
	if node := affinity.NodeAffinity; node != nil {
		errs = append(errs, validateNodeAffinity(node, path.Child("nodeAffinity"))...)
	}
	if pod := affinity.PodAffinity; pod != nil {
		errs = append(errs, validatePodTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution,
			pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAffinity"))...)
	}
	if pod := affinity.PodAntiAffinity; pod != nil {
		errs = append(errs, validatePodTerms(pod.RequiredDuringSchedulingIgnoredDuringExecution,
			pod.PreferredDuringSchedulingIgnoredDuringExecution, path.Child("podAntiAffinity"))...)
	}
	return errs
}

// Names of the two lists in every kind of affinity.
const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func validateNodeAffinity(node *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if selector := node.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		terms := path.Child(required, "nodeSelectorTerms")
		if len(selector.NodeSelectorTerms) == 0 {
			errs = append(errs, field.Required(terms, "must have at least one term"))
		}
		for i, term := range selector.NodeSelectorTerms {
			errs = append(errs, validateNodeTerm(term, terms.Index(i))...)
		}
	}
	for i, term := range node.PreferredDuringSchedulingIgnoredDuringExecution {
		at := path.Child(preferred).Index(i)
		errs = append(errs, validateWeight(term.Weight, at)...)
		errs = append(errs, validateNodeTerm(term.Preference, at.Child("preference"))...)
	}
	return errs
}

func validateNodeTerm(term corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, expression := range term.MatchExpressions {
		at := path.Child("matchExpressions").Index(i)
		errs = append(errs, metav1validation.ValidateLabelName(expression.Key, at.Child("key"))...)
		errs = append(errs, validateOperator(expression, at)...)
	}
	for i, expression := range term.MatchFields {
		at := path.Child("matchFields").Index(i)
		if expression.Key != metav1.ObjectNameField {
			errs = append(errs, field.NotSupported(at.Child("key"), expression.Key, []string{metav1.ObjectNameField}))
		}
		switch {
		case expression.Operator != corev1.NodeSelectorOpIn && expression.Operator != corev1.NodeSelectorOpNotIn:
			errs = append(errs, field.NotSupported(at.Child("operator"), expression.Operator,
				[]corev1.NodeSelectorOperator{corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn}))
		case len(expression.Values) != 1:
			errs = append(errs, field.Required(at.Child("values"), "must have exactly one value"))
		}
	}
	return errs
}

func validateOperator(expression corev1.NodeSelectorRequirement, path *field.Path) field.ErrorList {
	values := path.Child("values")
	switch expression.Operator {
	case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
		if len(expression.Values) == 0 {
			return field.ErrorList{field.Required(values, "must be given with the operators In and NotIn")}
		}
	case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
		if len(expression.Values) > 0 {
			return field.ErrorList{field.Forbidden(values, "may not be given with the operators Exists and DoesNotExist")}
		}
	case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
		if len(expression.Values) != 1 {
			return field.ErrorList{field.Required(values, "must be one whole number with the operators Gt and Lt")}
		}
		if _, err := strconv.ParseInt(expression.Values[0], 10, 64); err != nil {
			return field.ErrorList{field.Invalid(values.Index(0), expression.Values[0], "must be a whole number with the operators Gt and Lt")}
		}
	default:
		return field.ErrorList{field.NotSupported(path.Child("operator"), expression.Operator, []corev1.NodeSelectorOperator{
			corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
			corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
		})}
	}
	return nil
}

func validatePodTerms(hard []corev1.PodAffinityTerm, soft []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range hard {
		errs = append(errs, validatePodTerm(&hard[i], path.Child(required).Index(i))...)
	}
	for i := range soft {
		at := path.Child(preferred).Index(i)
		errs = append(errs, validateWeight(soft[i].Weight, at)...)
		errs = append(errs, validatePodTerm(&soft[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return errs
}

func validatePodTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	errs := validateTopologyKey(term.TopologyKey, path)
	errs = append(errs, validateSelector(term.LabelSelector, path.Child("labelSelector"))...)
	errs = append(errs, validateSelector(term.NamespaceSelector, path.Child("namespaceSelector"))...)
	for i, namespace := range term.Namespaces {
		for _, message := range utilvalidation.IsDNS1123Label(namespace) {
			errs = append(errs, field.Invalid(path.Child("namespaces").Index(i), namespace, message))
		}
	}
	return errs
}

func validateWeight(weight int32, path *field.Path) field.ErrorList {
	if weight < 1 || weight > 100 {
		return field.ErrorList{field.Invalid(path.Child("weight"), weight, "must be between 1 and 100")}
	}
	return nil
}

func validateTopologyKey(key string, path *field.Path) field.ErrorList {
	if key == "" {
		return field.ErrorList{field.Required(path.Child("topologyKey"), "must be a label of nodes, for example kubernetes.io/hostname")}
	}
	return metav1validation.ValidateLabelName(key, path.Child("topologyKey"))
}

func validateSelector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(selector, metav1validation.LabelSelectorValidationOptions{}, path)
}

func validateSpread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	type pair struct {
		key    string
		action corev1.UnsatisfiableConstraintAction
	}
	var errs field.ErrorList
	seen := map[pair]bool{}
	for i := range constraints {
		constraint, at := &constraints[i], path.Index(i)
		if constraint.MaxSkew < 1 {
			errs = append(errs, field.Invalid(at.Child("maxSkew"), constraint.MaxSkew, "must be at least 1"))
		}
		errs = append(errs, validateTopologyKey(constraint.TopologyKey, at)...)
		switch constraint.WhenUnsatisfiable {
		case corev1.DoNotSchedule:
			if constraint.MinDomains != nil && *constraint.MinDomains < 1 {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *constraint.MinDomains, "must be at least 1"))
			}
		case corev1.ScheduleAnyway:
			if constraint.MinDomains != nil {
				errs = append(errs, field.Invalid(at.Child("minDomains"), *constraint.MinDomains, "needs whenUnsatisfiable DoNotSchedule"))
			}
		default:
			errs = append(errs, field.NotSupported(at.Child("whenUnsatisfiable"), constraint.WhenUnsatisfiable,
				[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}))
		}
		if key := (pair{constraint.TopologyKey, constraint.WhenUnsatisfiable}); seen[key] {
			errs = append(errs, field.Duplicate(at, constraint.TopologyKey+", "+string(constraint.WhenUnsatisfiable)))
		} else {
			seen[key] = true
		}
		errs = append(errs, validateSelector(constraint.LabelSelector, at.Child("labelSelector"))...)
		errs = append(errs, validatePolicy(constraint.NodeAffinityPolicy, at.Child("nodeAffinityPolicy"))...)
		errs = append(errs, validatePolicy(constraint.NodeTaintsPolicy, at.Child("nodeTaintsPolicy"))...)
	}
	return errs
}

func validatePolicy(policy *corev1.NodeInclusionPolicy, path *field.Path) field.ErrorList {
	if policy == nil || *policy == corev1.NodeInclusionPolicyHonor || *policy == corev1.NodeInclusionPolicyIgnore {
		return nil
	}
	return field.ErrorList{
		field.NotSupported(path, *policy, []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}),
	}
}
