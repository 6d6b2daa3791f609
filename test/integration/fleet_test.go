package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// TestFleetRollsABoundedNumberAtATime verifies that a release with another default image rolls ten
// percent of the instances at a time, canaries first, also over a restart. An instance that fails
// is rolled back and stops the rollout of all others. Waiting instances can still be scaled,
// restored, and changed, and a deleted Deployment is created from the spec. After the failure is
// resolved, the rest follows.
func TestFleetRollsABoundedNumberAtATime(t *testing.T) {
	const instances, atATime = 20, 2
	canaries := []string{"web-07", "web-14"}
	const own = "web-05"
	f := newTestFleet(t, instances, func(o *v1alpha2.NginxOperator) {
		if slices.Contains(canaries, o.Name) {
			o.Labels = map[string]string{wellknown.LabelCanary: "true"}
		}
		if o.Name == own {
			o.Spec.Image = ownImage
		}
	})
	t.Cleanup(func() { f.restart(t) })
	f.restart(t, "RELATED_IMAGE_NGINX="+nextImage)

	f.waitForRolling(t, atATime, canaries...)
	waitForFleetMetric(t, "waiting", instances-1-atATime)
	waitForFleetMetric(t, "rolling", atATime)
	rollOut(t, f.namespace, canaries[0])
	f.waitForRolling(t, 1, canaries[1])
	rollOut(t, f.namespace, canaries[1])
	began := f.waitForRolling(t, atATime)
	f.restart(t, "RELATED_IMAGE_NGINX="+nextImage)
	f.waitForRolling(t, atATime, began...)

	newestFailsOf(t, f.namespace, began[0], "2", waitingPod("ErrImagePull", nextImage+": not found"))
	waitForCondition(t, f.namespace, began[0], v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	waitFor(t, func() error {
		restored, err := f.matching(t.Context(), hasImage(operandImage))
		if err == nil && !slices.Contains(restored, began[0]) {
			err = errors.New("what failed was not taken back")
		}
		return err
	})
	rollOut(t, f.namespace, began[0])
	waitForFleetMetric(t, "failed", 1)
	rollOut(t, f.namespace, began[1])
	f.waitForRolling(t, 0)
	f.restart(t, "RELATED_IMAGE_NGINX="+nextImage)
	f.waitForRolling(t, 0)
	waitForFleetMetric(t, "failed", 1)

	// The operator still reconciles the waiting instances.
	waiting := must1(f.matching(t.Context(), hasImage(operandImage)))(t)
	waiting = slices.DeleteFunc(waiting, func(name string) bool { return name == began[0] })
	if want := instances - 1 - len(canaries) - atATime; len(waiting) != want {
		t.Fatalf("%d wait, want %d", len(waiting), want)
	}
	for _, name := range waiting {
		f.waitsForFleet(t, name)
	}
	scaled, drifted, changed, deleted := waiting[0], waiting[1], waiting[2], waiting[3]
	must(t, suite.admin.Delete(t.Context(), must1(childrenOf(t.Context(), f.namespace, deleted))(t).deployment))
	update(t, newInstance(f.namespace, scaled), func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To[int32](2) })
	deployment := must1(childrenOf(t.Context(), f.namespace, drifted))(t).deployment
	update(t, deployment, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "docker.io/library/other:1" })
	update(t, newInstance(f.namespace, changed), func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "now" })
	waitFor(t, func() error {
		two := func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == 2 && hasImage(operandImage)(d) }
		isScaled, err := f.matching(t.Context(), two)
		old, oldErr := f.matching(t.Context(), hasImage(operandImage))
		next, nextErr := f.matching(t.Context(), hasImage(nextImage))
		if !slices.Equal(isScaled, []string{scaled}) || !slices.Contains(old, drifted) || !slices.Contains(next, deleted) ||
			!slices.Contains(next, changed) || len(next) != len(canaries)+atATime+1 {
			err = errors.Join(err, fmt.Errorf("scaled %v, with the old image %v, with the new one %v", isScaled, old, next))
		}
		return errors.Join(err, oldErr, nextErr)
	})
	rollOut(t, f.namespace, scaled)
	rollOut(t, f.namespace, drifted)
	rollOut(t, f.namespace, deleted)
	rollOut(t, f.namespace, changed)
	f.waitsForFleet(t, scaled)
	f.waitForRolling(t, 0)

	// A paused instance does not count as a failure of the release.
	update(t, newInstance(f.namespace, began[0]), func(o *v1alpha2.NginxOperator) { o.Spec.Paused = true })
	f.rollAll(t, instances-2, hasImage(nextImage))
	if f.atOnce > atATime {
		t.Errorf("%d rolled at a time", f.atOnce)
	}
	waitForFleetMetric(t, "waiting", 0)
	waitForFleetMetric(t, "rolling", 0)
	waitForFleetMetric(t, "failed", 0)
	if untouched := must1(childrenOf(t.Context(), f.namespace, own))(t).deployment; untouched.Generation != 1 {
		t.Error("an instance with an image of its own was changed")
	}
	events := &corev1.EventList{}
	must(t, suite.admin.List(t.Context(), events, client.InNamespace(f.namespace)))
	told := map[string]int{}
	for i := range events.Items {
		if event := &events.Items[i]; event.Reason == v1alpha2.ReasonWaitingForFleet {
			told[event.InvolvedObject.Name] += max(1, int(event.Count))
		}
	}
	for name, times := range told {
		if times > 1 {
			t.Errorf("%s was told %d times that it waits", name, times)
		}
	}
	if len(told) < instances/2 {
		t.Errorf("only %d instances were told that they wait", len(told))
	}
}

// TestFleetOfOneTenantStopsNoOther verifies that a tenant whose canary fails with a release stops
// only its own namespace. The other namespace starts at once and completes its rollout. (attacker:
// a tenant)
func TestFleetOfOneTenantStopsNoOther(t *testing.T) {
	const instances = 3
	mallory := newTestFleet(t, instances, func(o *v1alpha2.NginxOperator) { o.Labels = map[string]string{wellknown.LabelCanary: "true"} })
	shop := newTestFleet(t, instances, func(*v1alpha2.NginxOperator) {})
	t.Cleanup(func() { shop.restart(t) })
	shop.restart(t, "RELATED_IMAGE_NGINX="+nextImage)

	canary := mallory.waitForRolling(t, 1)[0]
	shop.waitForRolling(t, 1)
	newestFailsOf(t, mallory.namespace, canary, "2", crashingPod("this image is too new for me"))
	waitForCondition(t, mallory.namespace, canary, v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	shop.rollAll(t, instances, hasImage(nextImage))
	waitForFleetMetric(t, "failed", 1)
	waitForFleetMetric(t, "waiting", instances-1)
	for _, name := range must1(mallory.matching(t.Context(), func(*appsv1.Deployment) bool { return true }))(t) {
		if name != canary {
			mallory.waitsForFleet(t, name)
		}
	}
	for i := range instances {
		name := fmt.Sprintf("web-%02d", i)
		status := waitForCondition(t, shop.namespace, name, v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
		if strings.Contains(status.Message, mallory.namespace) {
			t.Errorf("%s names another namespace: %s", name, status.Message)
		}
	}
}

// TestFleetGoesOnWithTheNextImage verifies that the next image fixes a release with a wrong image:
// both rolled-back and waiting instances roll to the next image.
func TestFleetGoesOnWithTheNextImage(t *testing.T) {
	f := newTestFleet(t, 4, func(*v1alpha2.NginxOperator) {})
	t.Cleanup(func() { f.restart(t) })
	f.restart(t, "RELATED_IMAGE_NGINX="+noSuchImage)
	began := f.waitForRolling(t, 1)
	newestFailsOf(t, f.namespace, began[0], "2", waitingPod("ErrImagePull", noSuchImage+": not found"))
	waitForCondition(t, f.namespace, began[0], v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	f.rollAll(t, 4, hasImage(operandImage))
	f.waitForRolling(t, 0)

	f.restart(t, "RELATED_IMAGE_NGINX="+nextImage, "NGINX_OPERATOR_FLEET_ROLLOUT_MAX_UNAVAILABLE=2")
	f.waitForRolling(t, 2)
	f.rollAll(t, 4, hasImage(nextImage))
	for i := range 4 {
		name := fmt.Sprintf("web-%02d", i)
		waitForCondition(t, f.namespace, name, v1alpha2.ConditionReady, metav1.ConditionTrue, v1alpha2.ReasonAllReplicasReady)
	}
}

// TestFleetRollsToAnotherPodTemplate verifies that a release that changes the Pod template of the
// same image rolls the instances one after another. Waiting instances keep their Pods.
func TestFleetRollsToAnotherPodTemplate(t *testing.T) {
	next := buildNextRelease(t)
	f := newTestFleet(t, 3, func(*v1alpha2.NginxOperator) {})
	binary := suite.binary
	t.Cleanup(func() {
		suite.binary = binary
		f.restart(t)
	})
	suite.binary = next
	f.restart(t)
	isNext := func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Spec.Containers[0].LivenessProbe.PeriodSeconds == 20
	}
	first := f.waitForRolling(t, 1)
	if now := must1(f.matching(t.Context(), isNext))(t); !slices.Equal(now, first) {
		t.Errorf("%v have the new template, %v roll", now, first)
	}
	newestFailsOf(t, f.namespace, first[0], "2", crashingPod("no such option"))
	waitForCondition(t, f.namespace, first[0], v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonRolledBack)
	waitFor(t, func() error {
		now, err := f.matching(t.Context(), isNext)
		if err == nil && len(now) > 0 {
			err = fmt.Errorf("%v still have the new template", now)
		}
		return err
	})
	rollOut(t, f.namespace, first[0])
	f.waitForRolling(t, 0)

	update(t, newInstance(f.namespace, first[0]), func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "again" })
	f.rollAll(t, 3, isNext)
}

// buildNextRelease builds the operator with another Pod template.
func buildNextRelease(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	root := must1(filepath.Abs("../.."))(t)
	replace := map[string]string{}
	for file, change := range map[string]func(string) string{
		"assets/manifests/deployment.yaml": func(text string) string {
			return strings.Replace(text, "periodSeconds: 10\n", "periodSeconds: 20\n", 1)
		},
	} {
		before := string(must1(os.ReadFile(filepath.Join(root, file)))(t))
		after := change(before)
		if after == before {
			t.Fatalf("%s is not what this test expects", file)
		}
		replace[filepath.Join(root, file)] = filepath.Join(directory, filepath.Base(file))
		must(t, os.WriteFile(replace[filepath.Join(root, file)], []byte(after), 0o600))
	}
	overlay := filepath.Join(directory, "overlay.json")
	must(t, os.WriteFile(overlay, must1(json.Marshal(map[string]any{"Replace": replace}))(t), 0o600))
	binary := filepath.Join(directory, "manager")
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-overlay", overlay, "-o", binary, root)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("failed to build the next release: %v\n%s", err, out)
	}
	return binary
}
