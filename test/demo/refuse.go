package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	operatorName   = "nginx-operator-controller-manager"
	operatorLabels = "app.kubernetes.io/name=nginx-operator,app.kubernetes.io/component=controller-manager"
)

// refuse returns an error if the operator is installed in another way than the demo installs it: a
// cluster can have only one operator.
func (d *demo) refuse(ctx context.Context, throughOLM bool) error {
	deployments, err := d.get(ctx, "deployments", "--all-namespaces", "--selector="+operatorLabels,
		`--output=jsonpath={range .items[*]}{.metadata.namespace}={.metadata.labels.olm\.owner}{.metadata.labels.helm\.sh/chart}{"\n"}{end}`)
	if err != nil {
		return err
	}
	const kind = "subscriptions.operators.coreos.com"
	subscriptions, err := d.get(ctx, "crd", kind, "--output=name")
	if err == nil && subscriptions != "" {
		subscriptions, err = d.get(ctx, kind, "--all-namespaces",
			`--output=jsonpath={range .items[?(@.spec.name=="nginx-operator")]}{.metadata.namespace}{"\n"}{end}`)
	}
	if err != nil {
		return err
	}
	if err := other(throughOLM, strings.Fields(deployments), strings.Fields(subscriptions)); err != nil {
		remedy := "uninstall it first: docs/install.md#uninstall"
		if d.local {
			remedy = "run `make cluster-down` first, which removes the cluster"
		}
		return fmt.Errorf("%w, and a cluster can have only one operator: %s", err, remedy)
	}
	return nil
}

// other returns an error for an operator that the demo did not install. deployments are
// NAMESPACE=OWNER, where the owner is a ClusterServiceVersion or a Helm chart. subscriptions are
// namespaces.
func other(throughOLM bool, deployments, subscriptions []string) error {
	for _, namespace := range subscriptions {
		if !throughOLM || namespace != operatorNamespace {
			return fmt.Errorf("a Subscription in namespace %s installs the operator", namespace)
		}
	}
	for _, deployment := range deployments {
		namespace, owner, _ := strings.Cut(deployment, "=")
		if throughOLM && len(subscriptions) == 0 || !throughOLM && owner != "" || namespace != operatorNamespace {
			return fmt.Errorf("the operator is installed in another way (Deployment in namespace %s, owner %q)", namespace, owner)
		}
	}
	return nil
}
