// Package policy evaluates ValidatingAdmissionPolicies without an API server, with the compiler of
// the API server. It ignores matchConstraints, bindings, and audit annotations.
package policy

import (
	"context"
	"errors"
	"fmt"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Newest is the version of Kubernetes of the API server's module.
func Newest() *version.Version { return environment.DefaultCompatibilityVersion().AddMinor(1) }

// Policy is a compiled policy.
type Policy struct {
	compiler                          *cel.CompositedCompiler
	conditions, validations, messages cel.ConditionEvaluator
}

// Compile compiles a policy. It returns an error if an API server of the version of Kubernetes
// rejects a new policy with one of its expressions: a new expression must also compile on the
// version before.
func Compile(source *admissionregistrationv1.ValidatingAdmissionPolicy, kubernetes *version.Version) (*Policy, error) {
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(kubernetes.SubtractMinor(1)))
	if err != nil {
		return nil, fmt.Errorf("failed to create a compiler: %w", err)
	}
	declared := cel.OptionalVariableDeclarations{}
	var errs []error
	for _, variable := range source.Spec.Variables {
		if escaped, _ := apiservercel.Escape(variable.Name); escaped != variable.Name {
			errs = append(errs, fmt.Errorf("variable %s: the name is reserved", variable.Name))
		}
		named := expression{variable.Name, variable.Expression, celgo.AnyType}
		compiled := compiler.CompileAndStoreVariable(named, declared, environment.NewExpressions)
		if compiled.Error != nil {
			errs = append(errs, fmt.Errorf("variable %s: %s", variable.Name, compiled.Error.Detail))
		}
	}

	var conditions, validations, messages []cel.ExpressionAccessor
	for _, condition := range source.Spec.MatchConditions {
		conditions = append(conditions, expression{condition.Name, condition.Expression, celgo.BoolType})
	}
	for _, validation := range source.Spec.Validations {
		validations = append(validations, expression{validation.Message, validation.Expression, celgo.BoolType})
		if validation.MessageExpression == "" {
			messages = append(messages, nil)
		} else {
			messages = append(messages, expression{validation.Message, validation.MessageExpression, celgo.StringType})
		}
	}
	out := &Policy{compiler: compiler}
	for into, expressions := range map[*cel.ConditionEvaluator][]cel.ExpressionAccessor{
		&out.conditions: conditions, &out.validations: validations, &out.messages: messages,
	} {
		*into = compiler.CompileCondition(expressions, declared, environment.NewExpressions)
		errs = append(errs, (*into).CompilationErrors()...)
	}
	return out, errors.Join(errs...)
}

// Request is a write.
type Request struct {
	User, Subresource string
	// Object and OldObject are the object after and before an update. A create has no OldObject.
	// API servers before 1.37 evaluate objects of the type *unstructured.Unstructured, and later
	// ones evaluate Go types.
	Object, OldObject runtime.Object
	Namespace         *corev1.Namespace
}

// Evaluate returns whether the policy matches a request, and the messages of the validations that
// refuse it. The error is that of an expression. With the failurePolicy Fail, it refuses the
// request.
func (p *Policy) Evaluate(ctx context.Context, request Request) (matches bool, refusals []string, err error) {
	operation := admission.Update
	if request.OldObject == nil {
		operation = admission.Create
	}
	kind := request.Object.GetObjectKind().GroupVersionKind()
	attributes := &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(request.Object, request.OldObject, kind, "", "", schema.GroupVersionResource{},
			request.Subresource, operation, nil, false, &user.DefaultInfo{Name: request.User}),
		VersionedObject: admission.NewLazyObject(request.Object), VersionedKind: kind,
	}
	if request.OldObject != nil {
		attributes.VersionedOldObject = admission.NewLazyObject(request.OldObject)
	}
	review := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource{}, metav1.GroupVersionKind{})
	evaluate := func(evaluator cel.ConditionEvaluator) []cel.EvaluationResult {
		results, _, failed := evaluator.ForInput(p.compiler.CreateContext(ctx), attributes, review,
			cel.OptionalVariableBindings{}, cel.CreateNamespaceObject(request.Namespace), celconfig.RuntimeCELCostBudget)
		err = errors.Join(err, failed)
		return results
	}

	for _, condition := range evaluate(p.conditions) {
		if err = errors.Join(err, condition.Error); condition.EvalResult != celtypes.True {
			return false, nil, err
		}
	}
	validations, messages := evaluate(p.validations), evaluate(p.messages)
	if err != nil {
		return true, nil, err
	}
	for i, validation := range validations {
		if err = errors.Join(err, validation.Error); validation.EvalResult == celtypes.True {
			continue
		}
		// The expression of a message may fail if its validation passes.
		refusal := validation.ExpressionAccessor.(expression).name
		if err = errors.Join(err, messages[i].Error); messages[i].EvalResult != nil {
			refusal, _ = messages[i].EvalResult.Value().(string)
		}
		refusals = append(refusals, refusal)
	}
	return true, refusals, err
}

// expression is an expression of a policy. The name of a validation is its message.
type expression struct {
	name, text string
	returns    *celgo.Type
}

// GetName returns the name. Like the other methods, the compiler calls it.
func (e expression) GetName() string { return e.name }

// GetExpression returns the text.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes returns the allowed types of the result.
func (e expression) ReturnTypes() []*celgo.Type { return []*celgo.Type{e.returns} }
