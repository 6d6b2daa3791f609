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

	"golang.org/x/sync/semaphore"
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

// answering returns dry runs that the API server answers like this.
func answering(answer func(context.Context, client.Object, *client.CreateOptions) error) *dryRun {
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return answer(ctx, object, (&client.CreateOptions{}).ApplyOptions(options))
		},
	})
	render := func(object *v1alpha2.NginxOperator, kind string) client.Object {
		meta := metav1.ObjectMeta{Namespace: object.Namespace, Name: object.Name}
		if kind == "Service" {
			return &corev1.Service{ObjectMeta: meta}
		}
		return &appsv1.Deployment{ObjectMeta: meta}
	}
	return &dryRun{client: c, render: render, slots: semaphore.NewWeighted(dryRuns)}
}

// judged is an object of which the API server judges a part.
func judged() *v1alpha2.NginxOperator {
	return object(v1alpha2.NginxOperatorSpec{PodTemplate: &v1alpha2.PodTemplate{Tolerations: []corev1.Toleration{{Operator: "Is"}}}})
}

func notSupported() error {
	at := field.NewPath("spec", "template", "spec", "tolerations").Index(0).Child("operator")
	return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), "web",
		field.ErrorList{field.NotSupported(at, "Is", []string{"Equal", "Exists"})})
}

func TestDryRunRefusesOnlyWhatIsInvalid(t *testing.T) {
	const wrong = `spec.podTemplate.tolerations[0].operator: Unsupported value: "Is": supported values: "Equal", "Exists"`
	for name, test := range map[string]struct {
		version string
		answer  error
		want    string
	}{
		"valid":   {version: "v1alpha2"},
		"invalid": {version: "v1alpha2", answer: notSupported(), want: wrong},
		"invalid at v1alpha1": {
			version: "v1alpha1", answer: notSupported(), want: wrong + " (a field of v1alpha2; kubectl edit nginxoperators.v1alpha2." +
				"operator.example.com web changes it)",
		},
		"no namespace": {version: "v1alpha2", answer: apierrors.NewNotFound(corev1.Resource("namespaces"), "shop")},
		"quota":        {version: "v1alpha2", answer: apierrors.NewForbidden(appsv1.Resource("deployments"), "web", errors.New("quota"))},
		"exists":       {version: "v1alpha2", answer: apierrors.NewAlreadyExists(appsv1.Resource("deployments"), "web")},
		"unreachable":  {version: "v1alpha2", answer: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			dry := answering(func(_ context.Context, got client.Object, options *client.CreateOptions) error {
				if got.GetNamespace() != "shop" || got.GetName() != "web" || !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
					t.Errorf("asked about %s/%s with %+v", got.GetNamespace(), got.GetName(), options)
				}
				return test.answer
			})
			_, err := Validator{Verdict: dry.ask}.ValidateCreate(at(t, test.version), judged())
			if (err != nil) != (test.want != "") || err != nil && (!apierrors.IsInvalid(err) || !strings.HasSuffix(err.Error(), test.want)) {
				t.Errorf("want %q, got %v", test.want, err)
			}
		})
	}
}

// Each child that says something new is asked about, and no other; what is wrong with each is told.
func TestDryRunsOfSeveralChildren(t *testing.T) {
	var asked []string
	validator := Validator{Verdict: answering(func(_ context.Context, got client.Object, _ *client.CreateOptions) error {
		asked = append(asked, strings.TrimPrefix(fmt.Sprintf("%T", got), "*v1."))
		if _, isService := got.(*corev1.Service); !isService {
			return notSupported()
		}
		return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), "web",
			field.ErrorList{field.Invalid(field.NewPath("spec", "ipFamilyPolicy"), "RequireDualStack", "one family")})
	}).ask}
	both := judged()
	both.Spec.Service = &v1alpha2.Service{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyRequireDualStack)}
	_, err := validator.ValidateCreate(at(t, "v1alpha2"), both)
	if err == nil || !strings.Contains(err.Error(), "spec.podTemplate.tolerations[0].operator") ||
		!strings.Contains(err.Error(), `spec.service.ipFamilyPolicy: Invalid value: "RequireDualStack": one family`) {
		t.Errorf("got %v", err)
	}
	_, _ = validator.ValidateUpdate(at(t, "v1alpha2"), judged(), both)
	if want := []string{"Deployment", "Service", "Service"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

// Who says nothing that the API server judges, or nothing new, costs no request, nor does what is wrong anyway.
func TestDryRunsThatAreNotMade(t *testing.T) {
	asked := 0
	validator := Validator{Verdict: answering(func(context.Context, client.Object, *client.CreateOptions) error { asked++; return nil }).ask}
	other := judged()
	other.Spec.ForceRedeploy = "now"
	wrong := judged()
	wrong.Spec.Image = "No Image"
	_, created := validator.ValidateCreate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{ForceRedeploy: "now"}))
	_, updated := validator.ValidateUpdate(at(t, "v1alpha2"), judged(), other)
	_, refused := validator.ValidateCreate(at(t, "v1alpha2"), wrong)
	if asked > 0 || created != nil || updated != nil || refused == nil {
		t.Errorf("asked %d times: %v, %v, %v", asked, created, updated, refused)
	}
	if _, err := validator.ValidateUpdate(at(t, "v1alpha2"), object(v1alpha2.NginxOperatorSpec{}), judged()); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

// An API server that does not answer keeps nobody waiting for long, however many come.
func TestDryRunsTakeBoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		dry := answering(func(ctx context.Context, _ client.Object, _ *client.CreateOptions) error {
			asked.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		took := make(chan time.Duration)
		for range dryRuns {
			go func() {
				began := time.Now()
				dry.ask(t.Context(), judged(), "Deployment")
				took <- time.Since(began)
			}()
		}
		synctest.Wait()
		began := time.Now()
		if errs := dry.ask(t.Context(), judged(), "Deployment"); len(errs) > 0 || time.Since(began) != waitForDryRun || asked.Load() != dryRuns {
			t.Errorf("the one too many took %s, and %d were asked: %v", time.Since(began), asked.Load(), errs)
		}
		for range dryRuns {
			if d := <-took; d != dryRunTimeout {
				t.Errorf("took %s", d)
			}
		}
		if dry.ask(t.Context(), judged(), "Deployment"); asked.Load() != dryRuns+1 {
			t.Errorf("%d were asked after the others ended", asked.Load())
		}
	})
}

// A port of the nodes that the object's own Service has is not asked for again: the dry run would find it taken.
func TestDryRunLeavesOutItsOwnNodePorts(t *testing.T) {
	stored := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	stored.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: 30080}}
	var reads int
	c := interceptor.NewClient(fake.NewClientBuilder().WithObjects(stored).Build(), interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption,
		) error {
			reads++
			return c.Get(ctx, key, object, options...)
		},
	})
	for name, test := range map[string]struct {
		name       string
		asks, want []int32
		reads      int
	}{
		"its own":      {"web", []int32{0, 30080, 30081}, []int32{0, 0, 30081}, 1},
		"of another's": {"other", []int32{30080}, []int32{30080}, 1},
		"none":         {"web", []int32{0}, []int32{0}, 0},
	} {
		asked := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: test.name}}
		for _, nodePort := range test.asks {
			asked.Spec.Ports = append(asked.Spec.Ports, corev1.ServicePort{NodePort: nodePort})
		}
		reads = 0
		(&dryRun{client: c}).leaveOut(t.Context(), asked)
		var got []int32
		for _, port := range asked.Spec.Ports {
			got = append(got, port.NodePort)
		}
		if !slices.Equal(got, test.want) || reads != test.reads {
			t.Errorf("%s: %v after %d reads, want %v", name, got, reads, test.want)
		}
	}
}
