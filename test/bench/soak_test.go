//go:build soak

package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/wellknown"
	"github.com/example/nginx-operator/test/harness"
)

const (
	soakNamespace = "soak"
	// soakObjects is the approximate number of objects.
	soakObjects = 200
	// soakRate is the number of actions per second.
	soakRate = 20
	// soakRounds is the number of pauses in which the test checks the invariants.
	soakRounds = 10
	// soakGrowth is the factor, and soakSlack the additional MiB, by which memory may grow after
	// the first round. Go's garbage collector causes this variation.
	soakGrowth, soakSlack = 1.25, 16
)

// soak is the state of a soak test.
type soak struct {
	*environment
	random *rand.Rand
	// names are the names of the existing objects. next is the number of the next object.
	names []string
	next  int
	// done counts the actions by name.
	done map[string]int
}

// TestSoak changes and deletes objects and children at random and at a steady rate for
// SOAK_DURATION (default 1h). After each round it checks that every object converges, that the
// operator then writes nothing, and that memory does not grow.
func TestSoak(t *testing.T) {
	duration := time.Hour
	if value := os.Getenv("SOAK_DURATION"); value != "" {
		var err error
		duration, err = time.ParseDuration(value)
		must(t, err)
	}
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number does
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // not for secrets
	s := &soak{environment: newEnvironment(t), random: random, done: map[string]int{}}
	s.newNamespace(t, soakNamespace)
	operator := s.startLeader(t)
	for range soakObjects {
		must(t, s.create(t.Context()))
	}
	var first float64
	for round := 1; round <= soakRounds; round++ {
		s.disturb(t, duration/soakRounds)
		took := s.waitForConvergence(t)
		s.waitForQuiet(t, 6*time.Second, time.Minute)
		before := s.writes(t)
		time.Sleep(5 * time.Second) // the operator must write nothing during this time
		if written := s.writes(t).since(before); written.total() > 0 {
			t.Errorf("round %d: written while nothing happened: %s", round, written)
		}
		now, most := memory(t, operator)
		harness.Report(fmt.Sprintf("soak-round-%02d-converged-after", round), seconds(took), "s")
		harness.Report(fmt.Sprintf("soak-round-%02d-memory", round), now, "MiB")
		if round == 1 {
			first = now
		}
		if limit := first*soakGrowth + soakSlack; now > limit {
			t.Errorf("round %d: memory grew from %v to %v MiB, at most %.0f are allowed", round, first, now, limit)
		}
		if round == soakRounds {
			harness.Report("soak-memory-peak", most, "MiB")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.done)) {
		harness.Report("soak-"+name, float64(s.done[name]), "times")
	}
	select {
	case <-operator.Done():
		t.Errorf("the operator ended:\n%s", operator.Summary())
	default:
	}
}

// disturb runs random actions for the given duration.
func (s *soak) disturb(t *testing.T, duration time.Duration) {
	t.Helper()
	ticker := time.NewTicker(time.Second / soakRate)
	defer ticker.Stop()
	actions := []struct {
		name string
		do   func(context.Context) error
	}{
		{"port", s.edit(func(o *v1alpha2.NginxOperator) { o.Spec.Ports = onPort(1 + s.random.Int32N(65535)) })},
		{"replicas", s.edit(func(o *v1alpha2.NginxOperator) { o.Spec.Replicas = ptr.To(s.random.Int32N(4)) })},
		{"redeploy", s.edit(func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = fmt.Sprint(s.random.Int32()) })},
		{"recreate", s.recreate},
		{"child-deleted", s.deleteChild},
		{"child-edited", s.editChild},
		{"rolled-out", s.rollOutOne},
		{"rolled-out", s.rollOutOne},
	}
	for end := time.Now().Add(duration); time.Now().Before(end); <-ticker.C {
		action := actions[s.random.IntN(len(actions))]
		err := action.do(t.Context())
		// The operator may have changed the object, or the object may not exist yet.
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Fatalf("%s: %v", action.name, err)
		}
		s.done[action.name]++
	}
}

func (s *soak) anyName() string { return s.names[s.random.IntN(len(s.names))] }

func (s *soak) create(ctx context.Context) error {
	object := newInstance(soakNamespace, s.next)
	s.next++
	object.Spec.Replicas = ptr.To(s.random.Int32N(4))
	s.names = append(s.names, object.Name)
	return s.admin.Create(ctx, object)
}

func (s *soak) edit(change func(*v1alpha2.NginxOperator)) func(context.Context) error {
	return func(ctx context.Context) error {
		object := &v1alpha2.NginxOperator{}
		if err := s.admin.Get(ctx, client.ObjectKey{Namespace: soakNamespace, Name: s.anyName()}, object); err != nil {
			return err
		}
		change(object)
		return s.admin.Update(ctx, object)
	}
}

// recreate deletes an object and its children, as the garbage collector does, and creates another
// object.
func (s *soak) recreate(ctx context.Context) error {
	name := s.anyName()
	s.names = slices.DeleteFunc(s.names, func(other string) bool { return other == name })
	if err := s.admin.Delete(ctx, &v1alpha2.NginxOperator{ObjectMeta: metav1.ObjectMeta{Namespace: soakNamespace, Name: name}}); err != nil {
		return err
	}
	// A reconcile that started before the deletion may still write.
	time.Sleep(200 * time.Millisecond)
	children, err := s.childrenOf(ctx, name)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := client.IgnoreNotFound(s.admin.Delete(ctx, child)); err != nil {
			return err
		}
	}
	return s.create(ctx)
}

// childrenOf returns the children of one object, or of all objects if the name is "".
func (s *soak) childrenOf(ctx context.Context, name string) ([]client.Object, error) {
	selector := client.MatchingLabels{wellknown.LabelManagedBy: wellknown.OperatorName}
	if name != "" {
		selector[wellknown.LabelInstance] = name
	}
	var out []client.Object
	for _, list := range append(childLists(), &appsv1.ControllerRevisionList{}) {
		if err := s.admin.List(ctx, list, client.InNamespace(soakNamespace), selector); err != nil {
			return nil, err
		}
		out = append(out, items(list)...)
	}
	return out, nil
}

func (s *soak) anyChild(ctx context.Context) (client.Object, error) {
	children, err := s.childrenOf(ctx, s.anyName())
	if err != nil {
		return nil, err
	}
	if len(children) == 0 {
		return nil, apierrors.NewNotFound(v1alpha2.GroupVersion.WithResource("children").GroupResource(), "any")
	}
	return children[s.random.IntN(len(children))], nil
}

func (s *soak) deleteChild(ctx context.Context) error {
	child, err := s.anyChild(ctx)
	if err != nil {
		return err
	}
	return s.admin.Delete(ctx, child)
}

// editChild changes a field of a child that the operator sets.
func (s *soak) editChild(ctx context.Context) error {
	child, err := s.anyChild(ctx)
	if err != nil {
		return err
	}
	switch child := child.(type) {
	case *appsv1.Deployment:
		child.Spec.Template.Spec.Containers[0].Image = "example.com/drift:1"
	case *corev1.Service:
		child.Spec.Ports[0].Port = 1 + s.random.Int32N(65535)
	case *networkingv1.NetworkPolicy:
		child.Spec.Ingress = nil
	case *policyv1.PodDisruptionBudget:
		child.Spec.MaxUnavailable.IntVal = 2
	default:
		child.SetLabels(map[string]string{"drift": "true"})
	}
	return s.admin.Update(ctx, child)
}

func (s *soak) rollOutOne(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	if err := s.admin.Get(ctx, client.ObjectKey{Namespace: soakNamespace, Name: s.anyName()}, deployment); err != nil {
		return err
	}
	return s.rollOut(ctx, deployment)
}

// waitForConvergence waits until the children of every object match its spec, and returns the time
// that this took.
func (s *soak) waitForConvergence(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	waitFor(t, 2*time.Minute, func() error {
		objects := &v1alpha2.NginxOperatorList{}
		if err := s.admin.List(t.Context(), objects, client.InNamespace(soakNamespace)); err != nil {
			return err
		}
		children, err := s.childrenOf(t.Context(), "")
		if err != nil {
			return err
		}
		byOwner := map[string][]client.Object{}
		for _, child := range children {
			if owner := metav1.GetControllerOf(child); owner != nil {
				byOwner[string(owner.UID)] = append(byOwner[string(owner.UID)], child)
			}
		}
		var errs []error
		for i := range objects.Items {
			object := &objects.Items[i]
			if err := converged(object, byOwner[string(object.UID)]); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", object.Name, err))
			}
		}
		if len(objects.Items) != len(s.names) || len(byOwner) != len(s.names) {
			errs = append(errs, fmt.Errorf("%d objects and %d families of children, want %d", len(objects.Items), len(byOwner), len(s.names)))
		}
		return errors.Join(errs...)
	})
	return time.Since(began)
}

// converged returns an error that lists the differences between an object's spec and its children.
func converged(object *v1alpha2.NginxOperator, children []client.Object) error {
	port, replicas := defaults.Ports(&object.Spec)[0].Port, defaults.Replicas(&object.Spec)
	var wrong []string
	check := func(fine bool, what string) {
		if !fine {
			wrong = append(wrong, what)
		}
	}
	kinds := map[string]int{}
	for _, child := range children {
		switch child := child.(type) {
		case *appsv1.Deployment:
			kinds["Deployment"]++
			nginx := &child.Spec.Template.Spec.Containers[0]
			check(nginx.Image == operandImage, "image of the Deployment")
			check(nginx.Ports[0].ContainerPort == port, "port of the Deployment")
			check(*child.Spec.Replicas == replicas, "replicas of the Deployment")
			check(child.Spec.Template.Annotations[wellknown.AnnotationForceRedeploy] == object.Spec.ForceRedeploy, "forceRedeploy of the Deployment")
		case *corev1.Service:
			kinds["Service"]++
			check(len(child.Spec.Ports) == 1 && child.Spec.Ports[0].Port == port, "port of the Service")
		case *networkingv1.NetworkPolicy:
			kinds["NetworkPolicy"]++
			check(len(child.Spec.Ingress) == 1, "rules of the NetworkPolicy")
		case *policyv1.PodDisruptionBudget:
			kinds["PodDisruptionBudget"]++
			check(child.Spec.MaxUnavailable.IntVal == 1, "limit of the PodDisruptionBudget")
		case *corev1.ConfigMap:
			kinds["ConfigMap"]++
			check(strings.Contains(child.Data["nginx.conf"], fmt.Sprintf("listen %d default_server;", port)), "port of the ConfigMap")
		}
	}
	for _, kind := range []string{"ConfigMap", "Service", "NetworkPolicy", "Deployment"} {
		check(kinds[kind] == 1, "number of "+kind)
	}
	check(kinds["PodDisruptionBudget"] == 1 == (replicas > 1), "number of PodDisruptionBudget")
	check(object.Status.ObservedGeneration == object.Generation, "generation of the status")
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, ", "))
	}
	return nil
}
