package e2e

// spec.autoscaling with the real usage of Pods, as metrics-server measures it: an instance under
// load gets a second Pod, no request fails, and the number of replicas stays when spec.autoscaling
// is removed.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

func testAutoscaling(t *testing.T) {
	namespace := newNamespace(t, restricted)
	object := newObject(namespace, "web", 1)
	// An idle nginx uses less than 1m of CPU.
	object.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m")}}
	object.Spec.Autoscaling = &v1alpha2.Autoscaling{MaxReplicas: 2, TargetCPUUtilizationPercentage: ptr.To[int32](100)}
	must(t, suite.admin.Create(t.Context(), object))
	waitForReady(t, object)

	url := suite.reach.service(namespace, "web", 8080)
	loads := []*load{startLoad(t, namespace, url), startLoad(t, namespace, url)}
	took := waitFor(t, namespace, "a second Pod", installPatience, func(ctx context.Context) error {
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), autoscaler); err != nil {
			return err
		}
		if err := ready(ctx, object); err != nil || object.Status.ReadyReplicas != 2 {
			return errors.Join(fmt.Errorf("%d Pods are ready; the autoscaler says %+v", object.Status.ReadyReplicas, autoscaler.Status), err)
		}
		return nil
	})
	t.Logf("FIGURE autoscaling: a second Pod serves %s after the load began", seconds(took))

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Autoscaling = nil })
	waitFor(t, namespace, "the autoscaler to go", patience, func(ctx context.Context) error {
		err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), &autoscalingv2.HorizontalPodAutoscaler{})
		if err == nil {
			return errors.New("it is still there")
		}
		if !apierrors.IsNotFound(err) {
			return err
		}
		if n := *deploymentOf(t, object).Spec.Replicas; n != *object.Spec.Replicas {
			return fmt.Errorf("the Deployment has %d replicas, and the object declares %d", n, *object.Spec.Replicas)
		}
		return ready(ctx, object)
	})
	for _, load := range loads {
		load.finish(t, namespace, "load on an instance that scales")
	}
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](3) })
	waitForOnly(t, object, 3)
}
