package nginxoperator

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// setBy returns a Deployment of five replicas that were set through a subresource, with what the operator wrote down.
func setBy(subresource, record string) *appsv1.Deployment {
	return newDeployment(5, func(d *appsv1.Deployment) {
		d.Annotations = map[string]string{wellknown.AnnotationReplicas: record}
		d.ManagedFields = []metav1.ManagedFieldsEntry{{
			Manager: "kube-controller-manager", Subresource: subresource,
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`),
		}}
	})
}

func TestReplicas(t *testing.T) {
	type wanted struct {
		number int32
		record string
	}
	autoscaling := func(least, most int32) *v1alpha2.Autoscaling {
		return &v1alpha2.Autoscaling{MinReplicas: ptr.To(least), MaxReplicas: most}
	}
	for name, test := range map[string]struct {
		declared    int32
		autoscaling *v1alpha2.Autoscaling
		live        *appsv1.Deployment
		want        wanted
	}{
		"no Deployment yet":                 {2, nil, nil, wanted{2, "2"}},
		"nobody else set them":              {2, nil, newDeployment(5), wanted{2, "2"}},
		"an edit set them":                  {2, nil, setBy("", "2"), wanted{2, "2"}},
		"the scale subresource set them":    {2, nil, setBy("scale", "2"), wanted{5, "2"}},
		"the object changed its own since":  {2, nil, setBy("scale", "1"), wanted{2, "2"}},
		"the Deployment's status was wrote": {2, nil, setBy("status", "2"), wanted{2, "2"}},
		"a record of nobody":                {2, nil, setBy("", "2=5=5"), wanted{2, "2"}},
		"a record of too many":              {2, nil, setBy("", "2=1001"), wanted{2, "2"}},

		"autoscaling, no Deployment yet":           {1, autoscaling(3, 9), nil, wanted{3, "1=3"}},
		"autoscaling, a new one of more":           {4, autoscaling(3, 9), nil, wanted{4, "4"}},
		"autoscaling, a new one of too many":       {20, autoscaling(3, 9), nil, wanted{9, "20=9"}},
		"autoscaling of what runs":                 {7, autoscaling(1, 9), setBy("", "7"), wanted{7, "7"}},
		"autoscaling of what runs without record":  {7, autoscaling(1, 9), newDeployment(5), wanted{7, "7"}},
		"the autoscaler set them":                  {1, autoscaling(3, 9), setBy("scale", "1=3"), wanted{5, "1=3"}},
		"the autoscaler did, and the object after": {8, autoscaling(3, 9), setBy("scale", "1=3"), wanted{5, "8=3"}},
		"an edit of what the operator set":         {1, autoscaling(3, 9), setBy("", "1=3"), wanted{3, "1=3"}},
		"an edit of the record":                    {5, autoscaling(3, 9), setBy("", "6"), wanted{5, "5"}},
		"another declaration of what runs":         {8, autoscaling(3, 9), setBy("", "5"), wanted{5, "8=5"}},
		"lower bounds leave what runs":             {1, autoscaling(1, 9), setBy("", "1=3"), wanted{3, "1=3"}},
		"the lower bound rose":                     {1, autoscaling(6, 9), setBy("scale", "1=3"), wanted{6, "1=6"}},
		"the upper bound fell":                     {1, autoscaling(1, 4), setBy("scale", "1"), wanted{4, "1=4"}},
		"none are wanted":                          {0, autoscaling(3, 9), setBy("scale", "1=3"), wanted{0, "0"}},
		"some are wanted again":                    {2, autoscaling(1, 9), setBy("", "0"), wanted{2, "2"}},

		"autoscaling went, its number stays":         {1, nil, setBy("scale", "1=3"), wanted{5, "1=3"}},
		"autoscaling went before it changed them":    {1, nil, setBy("", "1=3"), wanted{3, "1=3"}},
		"autoscaling went, and the object says more": {2, nil, setBy("scale", "1=3"), wanted{2, "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := newObject(func(s *v1alpha2.NginxOperatorSpec) {
				s.Replicas, s.Autoscaling = &test.declared, test.autoscaling
			})
			deployment := desiredDeployment(object, inputs{deployment: test.live})
			if got := (wanted{*deployment.Spec.Replicas, deployment.Annotations[wellknown.AnnotationReplicas]}); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
