package e2e

import (
	"context"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
)

// watchFlaps counts how often a Deployment of a namespace had a ready Pod and then none. A kubelet
// on a busy machine reports a new Pod as ready, as unready, and as ready again. The function that
// it returns ends the watch.
func watchFlaps(t *testing.T, namespace string) (flaps func() int) {
	t.Helper()
	config, err := ctrl.GetConfig()
	must(t, err)
	api, err := kubernetes.NewForConfig(config)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	events, err := api.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{})
	must(t, err)
	var done sync.WaitGroup
	count, ready := 0, map[string]bool{}
	done.Go(func() {
		for event := range events.ResultChan() {
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			isReady := deployment.Status.ReadyReplicas > 0
			if ready[deployment.Name] && !isReady {
				count++
			}
			ready[deployment.Name] = isReady
		}
	})
	return func() int {
		cancel()
		done.Wait()
		return count
	}
}
