package main

// This file removes what an earlier demo left.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/example/nginx-operator/test/harness"
)

// madeByDemo selects the namespaces that a demo made: these may be removed with all that is in them.
const madeByDemo = "operator.example.com/made-by=demo"

// clean returns the cluster to where the operator never was, because nobody can walk back to the first release. It refuses,
// and removes nothing, where somebody else uses the operator.
func (u *upgrade) clean(ctx context.Context) error {
	if _, err := u.subscribedHere(ctx); err != nil {
		return err
	}
	ours, err := u.ownNamespaces(ctx)
	if err != nil {
		return err
	}
	if err := u.refuseOthers(ctx, ours); err != nil {
		return err
	}
	if err := u.removeAll(ctx, ours); err != nil {
		return fmt.Errorf("failed to remove what an earlier demo left: %w", err)
	}
	if len(ours) > 0 {
		fmt.Printf("    removing the namespaces %s, and the API\n", strings.Join(ours, ", "))
	}
	return harness.Eventually(ctx, 500*time.Millisecond, u.cleaned)
}

// removeAll begins to remove namespaces, and the API.
func (u *upgrade) removeAll(ctx context.Context, ours []string) error {
	var errs []error
	// Without its Subscription OLM does not restore what goes.
	if slices.Contains(ours, operatorNamespace) {
		for _, kind := range []dynamic.NamespaceableResourceInterface{u.api.Resource(subscribedKind), u.api.Resource(releaseKind)} {
			errs = append(errs, kind.Namespace(operatorNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, listAll))
		}
	}
	for _, name := range ours {
		errs = append(errs, remove(ctx, u.api.Resource(namespaceKind), name))
	}
	// The CRD takes the instances along. A migration that is done says nothing about the next one.
	return errors.Join(append(errs,
		remove(ctx, u.api.Resource(crdKind), crdName),
		remove(ctx, u.api.Resource(migrationKind), crdName))...)
}

// cleaned returns an error as long as anything is left.
func (u *upgrade) cleaned(ctx context.Context) error {
	left, err := u.ownNamespaces(ctx)
	if err != nil {
		return err
	}
	for _, kind := range []dynamic.ResourceInterface{u.api.Resource(crdKind), u.api.Resource(migrationKind)} {
		object, err := find(ctx, kind, crdName)
		if err != nil {
			return err
		}
		if object.GetName() != "" {
			left = append(left, object.GetKind()+" "+crdName)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("still there: %s", strings.Join(left, ", "))
	}
	return nil
}

func (u *upgrade) ownNamespaces(ctx context.Context) ([]string, error) {
	list, err := u.api.Resource(namespaceKind).List(ctx, metav1.ListOptions{LabelSelector: madeByDemo})
	if err != nil {
		return nil, fmt.Errorf("failed to list namespaces: %w", err)
	}
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	return out, nil
}

// refuseOthers returns an error where a namespace that the walk needs, or one that has an instance, was made by no demo.
func (u *upgrade) refuseOthers(ctx context.Context, ours []string) error {
	for _, name := range []string{operatorNamespace, fleetNamespace} {
		namespace, err := find(ctx, u.api.Resource(namespaceKind), name)
		if err != nil {
			return err
		}
		if namespace.GetName() != "" && !slices.Contains(ours, name) {
			return fmt.Errorf("namespace %s is not the demo's, which would have to remove it: "+
				"remove it first, with `make undeploy` if `make deploy` made it", name)
		}
	}
	crd, err := find(ctx, u.api.Resource(crdKind), crdName)
	if err != nil {
		return err
	}
	for _, version := range servedBy(crd) {
		stored, found := strings.CutSuffix(version, "*")
		if !found {
			continue // the others take an operator that works
		}
		list, err := u.api.Resource(instanceKind.WithVersion(stored)).List(ctx, listAll)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("failed to look for instances of others: %w", err)
		}
		for i := range list.Items {
			if instance := &list.Items[i]; !slices.Contains(ours, instance.GetNamespace()) {
				return fmt.Errorf("NginxOperator %s is in namespace %s, which is not the demo's: the walk begins without the API, so delete it first",
					instance.GetName(), instance.GetNamespace())
			}
		}
	}
	return nil
}

// remove deletes an object, if it is there.
func remove(ctx context.Context, objects dynamic.ResourceInterface, name string) error {
	if err := objects.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("failed to delete %s: %w", name, err)
	}
	return nil
}
