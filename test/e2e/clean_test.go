package e2e

// This file removes the leftovers of tests. It deletes only namespaces with the label of the tests
// or of the demo, and the operator's cluster-scoped objects.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
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

// testLabel is on every namespace that the tests or the demo create. Such a namespace may be
// deleted with all its objects.
const testLabel = "operator.example.com/made-by"

// madeByExamples is the value of testLabel on the namespaces of TestExamples. madeByTests is the
// value on the namespaces of all other tests.
const madeByTests, madeByExamples = "e2e", "e2e-examples"

// clean returns the cluster to its state before the first installation of the operator. If another
// user runs the operator on the cluster, clean removes nothing and returns an error.
func clean(ctx context.Context) error { return cleanNamespaces(ctx, testLabel) }

// cleanBesideExamples does the same as clean, but retains the namespaces of TestExamples, which
// runs in parallel.
func cleanBesideExamples(ctx context.Context) error {
	return cleanNamespaces(ctx, testLabel+","+testLabel+"!="+madeByExamples)
}

// startClean removes what the previous test left, including the CRD.
func startClean(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, cleanBesideExamples(ctx))
}

// startIn cleans the cluster, creates a namespace with a Pod Security level, and makes it that of
// the operator until the test ends.
func startIn(t *testing.T, level string) (operator string) {
	t.Helper()
	startClean(t)
	operator = newNamespace(t, level)
	installIn(t, operator)
	return operator
}

// installIn makes a namespace that of the operator until the test ends.
func installIn(t *testing.T, namespace string) {
	before := suite.operatorNamespace
	suite.operatorNamespace = namespace
	t.Cleanup(func() { suite.operatorNamespace = before })
}

// startInDefault does the same with the namespace in config/default. It creates the namespace with
// the label without which clean does not delete it.
func startInDefault(t *testing.T) {
	t.Helper()
	startClean(t)
	createDefaultNamespace(t)
	installIn(t, defaultNamespace)
}

func createDefaultNamespace(t *testing.T) {
	t.Helper()
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = defaultNamespace, map[string]string{testLabel: madeByTests}
	must(t, client.IgnoreAlreadyExists(suite.admin.Create(t.Context(), namespace)))
}

// cleanNamespaces does the same as clean with the namespaces that a label selector matches.
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
	// Without the Subscription, OLM does not recreate deleted objects.
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

// unconvert stops the conversion of the CRD, if the CRD exists. Without an operator, the API server
// cannot delete instances that are stored at another version.
func unconvert(ctx context.Context) error {
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	return client.IgnoreNotFound(suite.admin.Patch(ctx, operatorCRD(), none))
}

func operatorCRD() *unstructured.Unstructured {
	return objectOf("apiextensions.k8s.io/v1", "CustomResourceDefinition", crdName)
}

// deleteNamespace deletes a namespace, if it exists, and its Pods without a grace period. As long
// as a Pod drains, the control plane checks the namespace only every 15 seconds.
func deleteNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := suite.admin.Delete(ctx, namespace); err != nil {
		return client.IgnoreNotFound(err)
	}
	return suite.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(name), client.GracePeriodSeconds(0))
}

// refuseOthers returns an error if the operator, or an object of its API, is in a namespace that
// does not belong to the tests.
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

// anyObjects lists the instances at a version that can be read. Without a running operator, only
// the stored version can be read.
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

// cleanOnce deletes the cluster-scoped objects that OLM leaves, and returns an error as long as any
// object is left.
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
		// OLM may have restored the conversion after the deletion started.
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

// clusterScoped returns the cluster-scoped objects of an installation of the operator, except the
// CRD of its API.
func clusterScoped(ctx context.Context) ([]client.Object, error) {
	var out []client.Object
	operators := metadataList("operators.coreos.com/v1", "OperatorList")
	roles := metadataList(rbacv1.SchemeGroupVersion.String(), "ClusterRoleList")
	bindings := metadataList(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBindingList")
	// `make demo` installs the operator without OLM.
	mutating := metadataList(admissionv1.SchemeGroupVersion.String(), "MutatingWebhookConfigurationList")
	validating := metadataList(admissionv1.SchemeGroupVersion.String(), "ValidatingWebhookConfigurationList")
	policies := metadataList(admissionv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicyList")
	policyBindings := metadataList(admissionv1.SchemeGroupVersion.String(), "ValidatingAdmissionPolicyBindingList")
	for _, list := range []*metav1.PartialObjectMetadataList{operators, roles, bindings, mutating, validating, policies, policyBindings} {
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

// ignoreNoMatch returns nil if the error says that the cluster does not have the requested kind, or
// the error otherwise.
func ignoreNoMatch(err error) error {
	if meta.IsNoMatchError(err) {
		return nil
	}
	return err
}

// objectOf returns an untyped object with only its kind and name set.
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
