package operand

import (
	"math/rand/v2"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/fixture"
	"github.com/example/nginx-operator/internal/wellknown"
)

// scaledTo returns a Deployment that a client scaled through the scale subresource, with the
// operator's annotation.
func scaledTo(number int32, annotation string) *appsv1.Deployment {
	return fixture.NewDeployment(number, func(d *appsv1.Deployment) {
		if annotation != "" {
			d.Annotations = map[string]string{wellknown.AnnotationReplicas: annotation}
		}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Subresource: "scale",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
	})
}

func autoscaling(least, most int32) *v1alpha2.Autoscaling {
	return &v1alpha2.Autoscaling{MinReplicas: ptr.To(least), MaxReplicas: most}
}

func TestReplicas(t *testing.T) {
	const now = "replicas=2,generation=3" // fixture.NewObject has generation 3
	for name, test := range map[string]struct {
		declared    int32
		autoscaling *v1alpha2.Autoscaling
		live        *appsv1.Deployment
		number      int32
		annotation  string
	}{
		"no Deployment yet":            {2, nil, nil, 2, ""},
		"as declared":                  {2, nil, fixture.NewDeployment(2), 2, ""},
		"an edit is drift":             {2, nil, fixture.NewDeployment(5), 2, ""},
		"kubectl scale is drift":       {2, nil, scaledTo(5, ""), 2, ""},
		"an annotation of nobody":      {2, nil, scaledTo(5, "2=5=5"), 2, ""},
		"an annotation of no number":   {2, nil, scaledTo(5, "2=x"), 2, ""},
		"an annotation of too many":    {2, nil, scaledTo(5, "2=1001"), 2, ""},
		"an annotation without number": {2, nil, scaledTo(5, "="), 2, ""},

		"of 0.5.1, as declared":            {2, nil, scaledTo(2, "2"), 2, ""},
		"of 0.5.1, scaled":                 {2, nil, scaledTo(5, "2"), 5, now},
		"of 0.5.1, once autoscaled":        {2, nil, scaledTo(4, "2=4"), 4, now},
		"of 0.5.1, scaled to none":         {2, nil, scaledTo(0, "2"), 0, now},
		"of 0.5.1, other replicas since":   {2, nil, scaledTo(5, "1"), 2, ""},
		"retained":                         {2, nil, scaledTo(5, now), 5, now},
		"retained, and scaled again":       {2, nil, scaledTo(7, now), 7, now},
		"retained, and scaled as declared": {2, nil, scaledTo(2, now), 2, ""},
		"retained of another generation":   {2, nil, scaledTo(5, "replicas=2,generation=2"), 2, ""},
		"retained of other replicas":       {3, nil, scaledTo(5, now), 3, ""},
		"retained, and autoscaling since":  {2, autoscaling(1, 4), scaledTo(5, now), 4, ""},

		"autoscaling, no Deployment yet":     {1, autoscaling(3, 9), nil, 3, ""},
		"autoscaling, a new one of more":     {4, autoscaling(3, 9), nil, 4, ""},
		"autoscaling, a new one of too many": {20, autoscaling(3, 9), nil, 9, ""},
		"autoscaling of the running Pods":    {7, autoscaling(1, 9), fixture.NewDeployment(5), 5, ""},
		"the autoscaler set them":            {1, autoscaling(3, 9), scaledTo(5, ""), 5, ""},
		"the autoscaler of 0.5.1 set them":   {1, autoscaling(3, 9), scaledTo(5, "1=3"), 5, ""},
		"the lower bound rose":               {1, autoscaling(6, 9), scaledTo(5, ""), 6, ""},
		"the upper bound fell":               {1, autoscaling(1, 4), scaledTo(5, ""), 4, ""},
		"no Pods are declared":               {0, autoscaling(3, 9), scaledTo(5, ""), 0, ""},
		"Pods are declared again":            {2, autoscaling(1, 9), fixture.NewDeployment(0), 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := fixture.NewObject(func(s *v1alpha2.NginxOperatorSpec) {
				s.Replicas, s.Autoscaling = &test.declared, test.autoscaling
			})
			deployment := DesiredDeployment(object, Inputs{Deployment: test.live})
			number, annotation := *deployment.Spec.Replicas, deployment.Annotations[wellknown.AnnotationReplicas]
			if number != test.number || annotation != test.annotation {
				t.Errorf("%d replicas, annotation %q; want %d, %q", number, annotation, test.number, test.annotation)
			}
		})
	}
}

// TestReplicasDoNotDependOnHistory verifies that equal specs result in the same number of Pods,
// regardless of earlier specs and of clients that scaled the Deployment.
func TestReplicasDoNotDependOnHistory(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test, to be repeated
		object := fixture.NewObject()
		var live *appsv1.Deployment
		apply := func() {
			object.Generation++
			live = DesiredDeployment(object, Inputs{Deployment: live})
		}
		for range 1 + random.IntN(6) {
			object.Spec.Replicas, object.Spec.Autoscaling = ptr.To(random.Int32N(6)), nil
			if least := 1 + random.Int32N(5); random.IntN(2) == 0 {
				object.Spec.Autoscaling = autoscaling(least, least+random.Int32N(5))
			}
			apply()
			if random.IntN(2) == 0 {
				scaled := scaledTo(random.Int32N(9), "")
				live.Spec.Replicas, live.ManagedFields = scaled.Spec.Replicas, scaled.ManagedFields
			}
		}

		object.Spec.Replicas, object.Spec.Autoscaling = ptr.To[int32](2), nil
		apply()
		if number := *live.Spec.Replicas; number != 2 {
			t.Fatalf("seed %d: %d Pods, the spec declares 2", seed, number)
		}
	}
}
