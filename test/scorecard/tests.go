package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	answer = "scorecard was here"
	config = "server {\n    listen 8080;\n    listen 8081;\n    location / { return 200 \"" + answer + "\"; }\n}\n"
)

// object returns the object of the test: an instance with two ports and an inline configuration.
func (r *run) object() *v1alpha2.NginxOperator {
	return &v1alpha2.NginxOperator{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name},
		Spec: v1alpha2.NginxOperatorSpec{
			Replicas: ptr.To[int32](1),
			Ports:    []v1alpha2.Port{{Name: "http", Port: 8080}, {Name: "second", Port: 8081}},
			Config:   &v1alpha2.Config{Inline: config},
		},
	}
}

// ready waits until an object is Ready with its current generation.
func (r *run) ready(ctx context.Context, object *v1alpha2.NginxOperator) error {
	return eventually(ctx, func(ctx context.Context) error {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		is := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionReady)
		if is == nil {
			return fmt.Errorf("%s has no condition Ready; is the operator running?", object.Name)
		}
		if is.Status != metav1.ConditionTrue || is.ObservedGeneration != object.Generation {
			return fmt.Errorf("%s is not ready: %s of generation %d, now %d: %s",
				object.Name, is.Reason, is.ObservedGeneration, object.Generation, is.Message)
		}
		return nil
	})
}

// instance creates the object of the test and waits until it is ready.
func (r *run) instance(ctx context.Context) (*v1alpha2.NginxOperator, error) {
	object := r.object()
	if err := r.client.Create(ctx, object); err != nil {
		return nil, fmt.Errorf("failed to create: %w", err)
	}
	return object, r.ready(ctx, object)
}

func (r *run) serves(ctx context.Context, port int32) error {
	url := fmt.Sprintf("http://%s.%s.svc:%d/", r.name, r.namespace, port)
	return eventually(ctx, func(ctx context.Context) error {
		body, err := fetch(ctx, url)
		if err == nil && body != answer {
			err = fmt.Errorf("%s answered %.200q", url, body)
		}
		if err == nil {
			r.say("%s answers", url)
		}
		return err
	})
}

// operandServes checks that a new object becomes Ready, and that its Service serves the
// configuration on every port.
func operandServes(ctx context.Context, r *run) error {
	object, err := r.instance(ctx)
	if err != nil {
		return err
	}
	r.say("%s is ready", object.Name)
	for _, port := range object.Spec.Ports {
		if err := r.serves(ctx, port.Port); err != nil {
			return err
		}
	}
	return nil
}

// statusTruthful checks that the status describes the current generation and has the right counts.
// If a change is blocked, the status reports the reason and Ready is not True.
func statusTruthful(ctx context.Context, r *run) error {
	object, err := r.instance(ctx)
	if err != nil {
		return err
	}
	status := object.Status
	if status.ObservedGeneration != object.Generation || status.Replicas != 1 || status.ReadyReplicas != 1 || status.UpdatedReplicas != 1 {
		return fmt.Errorf("generation %d with one replica has the status %+v", object.Generation, status)
	}
	if len(status.BlockedBy) > 0 || meta.IsStatusConditionTrue(status.Conditions, v1alpha2.ConditionDegraded) {
		return fmt.Errorf("an instance that serves is degraded or blocked: %+v", status)
	}
	// The nodes take a moment to route a new Service.
	err = eventually(ctx, func(ctx context.Context) error {
		body, err := fetch(ctx, status.URL)
		if err == nil && body != answer {
			err = fmt.Errorf("status.url %s answers %.200q", status.URL, body)
		}
		return err
	})
	if err != nil {
		return err
	}
	r.say("the status of generation %d is right", object.Generation)

	before := object.DeepCopy()
	object.Spec.TLS = []v1alpha2.TLS{{SecretName: "there-is-none"}}
	if err := r.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("failed to name a Secret that does not exist: %w", err)
	}
	err = eventually(ctx, func(ctx context.Context) error {
		if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		is := meta.FindStatusCondition(object.Status.Conditions, v1alpha2.ConditionDegraded)
		if is == nil || is.ObservedGeneration != object.Generation ||
			is.Reason != v1alpha2.ReasonReferenceNotFound || len(object.Status.BlockedBy) != 1 {
			return fmt.Errorf("a Secret that does not exist shows as %+v, blocked by %v", is, object.Status.BlockedBy)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha2.ConditionReady) {
		return errors.New("condition Ready is True for a generation that does not serve")
	}
	r.say("a Secret that does not exist is named: %s", object.Status.BlockedBy[0].Message)
	return r.serves(ctx, 8080)
}

// versionsAgree checks that both API versions show the same object, and that a change at the older
// version preserves fields that only the newer version has.
func versionsAgree(ctx context.Context, r *run) error {
	object := r.object()
	if err := r.client.Create(ctx, object); err != nil {
		return fmt.Errorf("failed to create: %w", err)
	}
	older := &v1alpha1.NginxOperator{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), older); err != nil {
		return fmt.Errorf("failed to read at v1alpha1: %w", err)
	}
	if older.UID != object.UID || ptr.Deref(older.Spec.Port, 0) != 8080 || ptr.Deref(older.Spec.Replicas, 0) != 1 {
		return fmt.Errorf("v1alpha1 shows %+v of %+v", older.Spec, object.Spec)
	}
	before := older.DeepCopy()
	older.Spec.ForceRedeploy = "once"
	if err := r.client.Patch(ctx, older, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("failed to change at v1alpha1: %w", err)
	}
	now := &v1alpha2.NginxOperator{}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(object), now); err != nil {
		return fmt.Errorf("failed to read at v1alpha2: %w", err)
	}
	if now.Spec.ForceRedeploy != "once" || len(now.Spec.Ports) != 2 || now.Spec.Config == nil || now.Spec.Config.Inline != config {
		return fmt.Errorf("after a change at v1alpha1, v1alpha2 shows %+v", now.Spec)
	}
	r.say("both versions show %s, and a change at v1alpha1 lost nothing", object.Name)
	return nil
}

// badInputRefused checks that a configuration with an unknown directive is rejected.
func badInputRefused(ctx context.Context, r *run) error {
	object := r.object()
	object.Spec.Config.Inline = "server {\n    listen 8080;\n    listen 8081;\n    lisn 8082;\n}\n"
	err := r.client.Create(ctx, object)
	if err == nil {
		return errors.New("a configuration with an unknown directive was not refused")
	}
	if !apierrors.IsInvalid(err) {
		return fmt.Errorf("a configuration with an unknown directive was refused for another reason: %w", err)
	}
	r.say("refused: %v", err)
	return nil
}
