package e2e

// The operator rolls back failed changes, without a failed request.
//
//   - Rolled back are a configuration that nginx rejects, an image without nginx, and Pods that
//     find no node within the deadline. The status contains the error message of nginx, the
//     kubelet, or the scheduler. The last good revision runs again completely: image,
//     configuration, and content.
//   - A rolled-back instance can scale, replaces its Pods, and gets renewed certificates.
//   - A corrected spec rolls out and serves.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// withoutNginx is an image without nginx.
const withoutNginx = "docker.io/library/busybox:1.36"

func testRollback(t *testing.T) {
	web := newLoaded(t, &v1alpha2.Config{Inline: serverText("good")})
	object, namespace, plain := web.object, web.object.Namespace, web.plain
	newConfigMap(t, namespace, "second", "index.html", page+" second")
	good := object.Spec.DeepCopy()

	// fails makes a change that is rolled back, and checks the status.
	fails := func(what string, words []string, change func(*v1alpha2.NginxOperatorSpec)) {
		t.Helper()
		began := time.Now()
		update(t, object, func(o *v1alpha2.NginxOperator) {
			good.DeepCopyInto(&o.Spec)
			change(&o.Spec)
		})
		waitForDegraded(t, object, v1alpha2.ReasonRolledBack)
		told := time.Since(began)
		message := object.Status.BlockedBy[0].Message
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(message, word) }) {
			t.Errorf("%s: the message does not say all of %q: %s", what, words, message)
		}
		waitFor(t, namespace, "what served before to be back", patience, func(ctx context.Context) error {
			return hasCondition(ctx, object, v1alpha2.ConditionProgressing, metav1.ConditionFalse, v1alpha2.ReasonRolledBack)
		})
		t.Logf("FIGURE %s: told after %s, taken back after %s", what, seconds(told), seconds(time.Since(began)))
		answers(t, namespace, plain, page+" first")
		answers(t, namespace, plain+"revision", "good")
		if object.Status.Image != deploymentOf(t, object).Spec.Template.Spec.Containers[0].Image {
			t.Errorf("%s: the status says image %s", what, object.Status.Image)
		}
	}
	fails("an image without nginx", []string{withoutNginx, "nginx"}, func(s *v1alpha2.NginxOperatorSpec) {
		s.Rollout = &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](30)}
		s.Image = withoutNginx
	})
	fails("no node", []string{"no node can run a Pod"}, func(s *v1alpha2.NginxOperatorSpec) {
		s.Rollout = &v1alpha2.Rollout{ProgressDeadlineSeconds: ptr.To[int32](10)}
		s.PodTemplate = &v1alpha2.PodTemplate{NodeSelector: map[string]string{"example.com/nowhere": "yes"}}
	})
	fails("a configuration that nginx refuses", []string{"(configuration)", "host not found in upstream", "spec.config, line 7"},
		func(s *v1alpha2.NginxOperatorSpec) {
			s.Content.ConfigMapRef.Name = "second"
			const api = "location /api { proxy_pass http://no-such-host.invalid; } "
			s.Config.Inline = strings.Replace(serverText("bad"), "location / {", api+"location / {", 1)
		})
	recordStatus(t, namespace, "web")

	// A rolled-back instance supports the same operations as any other instance.
	kubectl(t, "scale", "-n", namespace, "ngx/web", "--replicas=3")
	waitFor(t, namespace, "three replicas", patience, func(ctx context.Context) error {
		return hasReady(ctx, object, 3)
	})
	before := uidsOf(t, object)
	must(t, suite.admin.Delete(t.Context(), onePodOf(t, object)))
	waitFor(t, namespace, "another Pod", patience, func(ctx context.Context) error {
		if err := hasReady(ctx, object, 3); err != nil || !slices.Equal(uidsOf(t, object), before) {
			return err
		}
		return errors.New("the Pods are the same")
	})
	update(t, web.secret, func(s *corev1.Secret) { s.Data = newCertificate(t, "second.example.com") })
	if suite.local {
		waitFor(t, namespace, "the renewed certificate", 2*patience, func(ctx context.Context) error {
			return presents(ctx, namespace, "second.example.com")
		})
	}
	waitForDegraded(t, object, v1alpha2.ReasonRolledBack)
	answers(t, namespace, plain+"revision", "good")

	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Config.Inline = serverText("mended") })
	waitForRecovery(t, object)
	answers(t, namespace, plain+"revision", "mended")
	answers(t, namespace, plain, page+" second")
	web.finish(t, 3, "changes that are rolled back")
}

// hasReady returns an error unless exactly count replicas exist and all of them are ready.
func hasReady(ctx context.Context, object *v1alpha2.NginxOperator, count int32) error {
	if err := suite.admin.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	if status := object.Status; status.ReadyReplicas != count || status.Replicas != count {
		return fmt.Errorf("%d of %d replicas are ready", status.ReadyReplicas, status.Replicas)
	}
	return nil
}
