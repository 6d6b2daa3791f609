package e2e

// This file removes what tests leave. It touches only what carries the label of the tests or of the demo.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// testLabel is on every namespace that the tests or the demo made: these may be removed with all that is in them.
const testLabel = "operator.example.com/made-by"

// madeByExamples is the label's value where TestExamples made the namespace, madeByTests where any other test did.
const madeByTests, madeByExamples = "e2e", "e2e-examples"

// clean returns the cluster to the state in which the operator was never on it. It refuses, and removes nothing, where
// somebody else uses the operator there.
func clean(ctx context.Context) error { return cleanNamespaces(ctx, testLabel) }

// cleanBesideExamples does the same while TestExamples runs.
func cleanBesideExamples(ctx context.Context) error {
	return cleanNamespaces(ctx, testLabel+","+testLabel+"!="+madeByExamples)
}

// cleanNamespaces does it with the namespaces that a selector names.
func cleanNamespaces(ctx context.Context, selector string) error {
	made, err := labels.Parse(selector)
	if err != nil {
		return fmt.Errorf("failed to select namespaces: %w", err)
	}
	namespaces := &corev1.NamespaceList{}
	if err := suite.admin.List(ctx, namespaces, client.MatchingLabelsSelector{Selector: made}); err != nil {
		return fmt.Errorf("failed to list namespaces: %w", err)
	}
	ours := sets.New[string]()
	for i := range namespaces.Items {
		ours.Insert(namespaces.Items[i].Name)
	}
	if err := refuseOthers(ctx, ours); err != nil {
		return err
	}
	// Without its Subscription OLM does not restore what goes; the CRD takes the instances along.
	errs := []error{removeExtension(ctx)}
	for namespace := range ours {
		for _, kind := range []string{"Subscription", "ClusterServiceVersion"} {
			errs = append(errs, ignoreNoMatch(suite.admin.DeleteAllOf(ctx, olmObject(kind, "", ""), client.InNamespace(namespace))))
		}
	}
	for namespace := range ours {
		errs = append(errs, deleteNamespace(ctx, namespace))
	}
	// The deletion of the CRD deletes the instances.
	errs = append(errs, unconvert(ctx), client.IgnoreNotFound(suite.admin.Delete(ctx, operatorCRD())))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("failed to remove what tests left: %w", err)
	}
	return eventually(ctx, func(ctx context.Context) error { return cleanOnce(ctx, ours) })
}

// unconvert stops the conversion of the CRD, if the CRD exists. Without an operator, the API server could not delete instances that are
// stored at another version.
func unconvert(ctx context.Context) error {
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	return client.IgnoreNotFound(suite.admin.Patch(ctx, operatorCRD(), none))
}

func operatorCRD() *unstructured.Unstructured {
	return objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", crdName)
}

// deleteNamespace deletes a namespace, if it is there, and its Pods at once: as long as one of them drains, the control plane looks at
// the namespace every quarter of a minute only.
func deleteNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := suite.admin.Delete(ctx, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	return suite.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(name), client.GracePeriodSeconds(0))
}

// refuseOthers returns an error where the operator, or an object of its API, is in a namespace that is not ours.
func refuseOthers(ctx context.Context, ours sets.Set[string]) error {
	found := func(what, namespace, name, cure string) error {
		return fmt.Errorf("the cluster is in use, %s %s is in namespace %s: %s", what, name, namespace, cure)
	}
	subscriptions := &unstructured.UnstructuredList{}
	subscriptions.SetAPIVersion("operators.coreos.com/v1alpha1")
	subscriptions.SetKind("SubscriptionList")
	deployments := &appsv1.DeploymentList{}
	for _, list := range []client.ObjectList{subscriptions, deployments} {
		if err := ignoreNoMatch(suite.admin.List(ctx, list)); err != nil {
			return fmt.Errorf("failed to look for the operator: %w", err)
		}
	}
	objects, err := anyObjects(ctx)
	if err != nil {
		return fmt.Errorf("failed to look for instances: %w", err)
	}
	var errs []error
	for i := range subscriptions.Items {
		if subscription := &subscriptions.Items[i]; text(subscription, "spec", "name") == packageName && !ours.Has(subscription.GetNamespace()) {
			errs = append(errs, found("Subscription", subscription.GetNamespace(), subscription.GetName(), "uninstall the operator first"))
		}
	}
	for i := range deployments.Items {
		if deployment := &deployments.Items[i]; deployment.Name == operatorName && !ours.Has(deployment.Namespace) {
			errs = append(errs, found("Deployment", deployment.Namespace, deployment.Name,
				"uninstall the operator first, with `make undeploy` if `make deploy` made it"))
		}
	}
	for i := range objects.Items {
		if object := &objects.Items[i]; !ours.Has(object.Namespace) {
			errs = append(errs, found("NginxOperator", object.Namespace, object.Name, "the tests remove the API, so delete it first"))
		}
	}
	return errors.Join(errs...)
}

// anyObjects lists the instances in the version that can be read: where no operator works it is the one that is stored.
func anyObjects(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
	var errs []error
	for _, version := range []string{newer, older} {
		list := metadataList(v1alpha2.GroupVersion.Group+"/"+version, "NginxOperatorList")
		err := suite.admin.List(ctx, list)
		if err == nil || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			if len(list.Items) > 0 || version == older {
				return list, nil
			}
			continue
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// cleanOnce removes what OLM leaves outside of namespaces, and returns an error as long as anything is left.
func cleanOnce(ctx context.Context, namespaces sets.Set[string]) error {
	var errs []error
	for name := range namespaces {
		err := suite.admin.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
		if err == nil {
			err = fmt.Errorf("namespace %s is still there", name)
		}
		errs = append(errs, client.IgnoreNotFound(err))
	}
	if err := suite.admin.Get(ctx, client.ObjectKey{Name: crdName}, operatorCRD()); err == nil {
		// OLM may have restored the conversion after the deletion began.
		errs = append(errs, fmt.Errorf("%s is still there", crdName), unconvert(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	left, err := clusterScoped(ctx)
	for _, object := range left {
		errs = append(errs, fmt.Errorf("%s is still there", object.GetName()), client.IgnoreNotFound(suite.admin.Delete(ctx, object)))
	}
	return errors.Join(append(errs, err)...)
}

// clusterScoped returns the objects outside of namespaces that an installation of the operator makes, beside the
// CRD of its API.
func clusterScoped(ctx context.Context) ([]client.Object, error) {
	var out []client.Object
	operators := metadataList("operators.coreos.com/v1", "OperatorList")
	roles := metadataList(rbacv1.SchemeGroupVersion.String(), "ClusterRoleList")
	bindings := metadataList(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBindingList")
	for _, list := range []*metav1.PartialObjectMetadataList{operators, roles, bindings} {
		if err := ignoreNoMatch(suite.admin.List(ctx, list)); err != nil {
			return nil, fmt.Errorf("failed to list %s: %w", list.Kind, err)
		}
		for i := range list.Items {
			name := list.Items[i].Name
			if strings.HasPrefix(name, packageName) && !strings.HasPrefix(name, examplesName) || strings.HasPrefix(name, crdName) {
				out = append(out, objectOf(list.APIVersion, strings.TrimSuffix(list.Kind, "List"), name))
			}
		}
	}
	return out, nil
}

// ignoreNoMatch returns nil for the error of a request for a kind that the cluster does not have, else the error.
func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// objectOf returns an empty object of a kind that the client has no type for.
func objectOf(apiVersion, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	object.SetName(name)
	return object
}

func metadataList(apiVersion, kind string) *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}}
}
