package webhook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const operatorNamespace = "ops"

// answering returns a dryRun whose API server gives this answer. Any request other than a create
// fails the test.
func answering(t *testing.T, answer func(context.Context, client.Object, *client.CreateOptions) error) *dryRun {
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return answer(ctx, object, (&client.CreateOptions{}).ApplyOptions(options))
		},
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			t.Errorf("admission reads %T %s", object, key)
			return nil
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			t.Errorf("admission reads %T", list)
			return nil
		},
	})
	render := func(object *v1alpha2.NginxOperator) corev1.PodTemplateSpec {
		template := corev1.PodTemplateSpec{}
		template.Labels = map[string]string{"app.kubernetes.io/instance": object.Name}
		template.Spec.Tolerations = object.Spec.PodTemplate.Tolerations
		return template
	}
	return newDryRun(c, render, operatorNamespace)
}

// judged returns an object with a field that the API server validates in a dry run.
func judged() *v1alpha2.NginxOperator {
	return object(v1alpha2.NginxOperatorSpec{PodTemplate: &v1alpha2.PodTemplate{Tolerations: []corev1.Toleration{{Operator: "Is"}}}})
}

var deployments = appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind()

func notSupported() *apierrors.StatusError {
	at := field.NewPath("spec", "template", "spec", "tolerations").Index(0).Child("operator")
	return apierrors.NewInvalid(deployments, dryRunName, field.ErrorList{field.NotSupported(at, "Is", []string{"Equal", "Exists"})})
}

// denied returns the error of an admission webhook or policy that imitates the API server's
// validation error, including the field.
func denied(format string) error {
	err := notSupported()
	err.ErrStatus.Message = fmt.Sprintf(format, err.ErrStatus.Message)
	return err
}

// isQuestion returns an error unless the object is the expected Deployment. Only its Pod template
// may come from a review.
func isQuestion(got client.Object, options *client.CreateOptions) error {
	deployment, isDeployment := got.(*appsv1.Deployment)
	if !isDeployment || !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
		return fmt.Errorf("a %T with %+v", got, options)
	}
	want := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: dryRunName}}
	want.Spec.Replicas, want.Spec.Template = ptr.To[int32](0), deployment.Spec.Template
	want.Spec.Selector = &metav1.LabelSelector{MatchLabels: deployment.Spec.Template.Labels}
	if diff := cmp.Diff(want, deployment); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}

func TestDryRunRefusesOnlyWhatIsInvalid(t *testing.T) {
	const wrong = `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"`
	resource := appsv1.Resource("deployments")
	for name, test := range map[string]struct {
		version string
		answer  error
		want    string
		// warns is true if the API server did not answer.
		warns bool
	}{
		"valid":   {version: "v1alpha2"},
		"invalid": {version: "v1alpha2", answer: notSupported(), want: wrong},
		"invalid at v1alpha1": {
			version: "v1alpha1", answer: notSupported(), want: wrong + " (a field of v1alpha2; to change it, run kubectl edit " +
				"nginxoperators.v1alpha2.operator.example.com web)",
		},
		"no namespace":            {version: "v1alpha2", answer: apierrors.NewNotFound(corev1.Resource("namespaces"), operatorNamespace)},
		"quota":                   {version: "v1alpha2", answer: apierrors.NewForbidden(resource, dryRunName, errors.New("quota"))},
		"exists":                  {version: "v1alpha2", answer: apierrors.NewAlreadyExists(resource, dryRunName)},
		"unreachable":             {version: "v1alpha2", answer: errors.New("connection refused"), warns: true},
		"unreachable at v1alpha1": {version: "v1alpha1", answer: errors.New("connection refused"), warns: true},
		"a webhook":               {version: "v1alpha2", answer: denied(`admission webhook "a.example.com" denied the request: %s`)},
		"a policy": {
			version: "v1alpha2",
			answer:  denied(`deployments.apps "x" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: %s`),
		},
		"outside of the Pod template": {version: "v1alpha2", answer: apierrors.NewInvalid(deployments, dryRunName, field.ErrorList{
			field.Invalid(field.NewPath("spec", "ipFamilies"), "a", "wrong"), field.Required(field.NewPath("spec", "rules"), ""),
		})},
	} {
		t.Run(name, func(t *testing.T) {
			dry := answering(t, func(_ context.Context, got client.Object, options *client.CreateOptions) error {
				if err := isQuestion(got, options); err != nil {
					t.Errorf("asked about %v", err)
				}
				return test.answer
			})
			warnings, err := Validator{Verdict: dry.ask}.ValidateCreate(at(t, test.version), judged())
			if warns := strings.Contains(strings.Join(warnings, "\n"), "did not check the Pod template"); warns != test.warns {
				t.Errorf("the warnings are %q", warnings)
			}
			if (err != nil) != (test.want != "") || err != nil && (!apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), test.want)) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// TestNoDryRunOfInvalidObjects verifies that an object with other errors is rejected without a
// request.
func TestNoDryRunOfInvalidObjects(t *testing.T) {
	validator := Validator{Verdict: answering(t, func(context.Context, client.Object, *client.CreateOptions) error {
		t.Error("the API server is asked")
		return nil
	}).ask}
	wrong := judged()
	wrong.Spec.Image = "No Image"
	if _, err := validator.ValidateCreate(at(t, "v1alpha2"), wrong); err == nil {
		t.Error("the object is admitted")
	}
}

// TestDryRunsTakeBoundedTime verifies that an unresponsive API server delays reviews for a bounded
// time, for any number of reviews.
func TestDryRunsTakeBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		dry := answering(t, func(ctx context.Context, _ client.Object, _ *client.CreateOptions) error {
			asked.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		took := make(chan time.Duration)
		for range dryRuns {
			go func() {
				began := time.Now()
				dry.ask(t.Context(), judged())
				took <- time.Since(began)
			}()
		}
		synctest.Wait()
		began := time.Now()
		errs, warnings := dry.ask(t.Context(), judged())
		if len(errs) > 0 || len(warnings) != 1 || time.Since(began) != waitForDryRun || asked.Load() != dryRuns {
			t.Errorf("the one too many took %s, and %d were asked: %v, %q", time.Since(began), asked.Load(), errs, warnings)
		}
		for range dryRuns {
			if d := <-took; d != dryRunTimeout {
				t.Errorf("took %s", d)
			}
		}
		_, _ = dry.ask(t.Context(), judged())
		if asked.Load() != dryRuns+1 {
			t.Errorf("%d were asked after the others ended", asked.Load())
		}
	})
}

// TestDryRunsPerAddress verifies that more than 500 objects at once are validated, that a rate
// follows, and that the API server gets no request beyond it. Such an object is admitted with a
// warning.
func TestDryRunsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		dry := answering(t, func(context.Context, client.Object, *client.CreateOptions) error { asked++; return nil })
		validator := Validator{Verdict: dry.ask}
		for i := range dryRunBurst {
			if warnings, err := validator.ValidateCreate(at(t, "v1alpha2"), judged()); len(warnings) > 0 || err != nil {
				t.Fatalf("object %d: %q, %v", i, warnings, err)
			}
		}
		for _, version := range []string{"v1alpha1", "v1alpha2"} {
			warnings, err := validator.ValidateCreate(at(t, version), judged())
			if len(warnings) != 1 || !strings.Contains(warnings[0], "too many reviews from one address") || err != nil {
				t.Errorf("one too many at %s: %q, %v", version, warnings, err)
			}
		}
		if asked != dryRunBurst {
			t.Errorf("%d dry runs at once, want %d", asked, dryRunBurst)
		}
		if !dry.rates.Allow("192.0.2.1") {
			t.Error("another address is refused")
		}
		time.Sleep(3 * time.Second)
		for range dryRunBurst {
			_, _ = dry.ask(t.Context(), judged())
		}
		if want := dryRunBurst + 3*dryRunRate; asked != want {
			t.Errorf("%d dry runs after 3 seconds, want %d", asked, want)
		}
	})
}
