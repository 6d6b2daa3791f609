package main

// This file says what to try next.

import (
	"fmt"
	"strings"
)

// line returns what to type to run a command where the cluster can be reached.
func (d *demo) line(command string) string {
	if d.local {
		return "make cluster-exec CMD='" + command + "'"
	}
	return "make cluster-exec CLUSTER=external CMD='" + command + "'"
}

// hints are commands that show what the operator does.
func (d *demo) hints() string {
	const moved = 8081
	request := "bin/demo get " + serviceURL(moved)
	if !d.local {
		request = fmt.Sprintf("kubectl get --raw /api/v1/namespaces/%s/services/%s:%d/proxy/", instanceNamespace, instance, moved)
	}
	object := fmt.Sprintf("nginxoperator/%s -n %s", instance, instanceNamespace)
	wait := "kubectl wait --for=condition=Ready --timeout=60s " + object
	deployment := fmt.Sprintf("deployment/%s -n %s", instance, instanceNamespace)
	return d.list([]hint{
		{"Scale it", "kubectl scale --replicas=3 " + object + " && " + wait + " && kubectl get " + object},
		{
			"Move it to another port",
			fmt.Sprintf(`kubectl patch %s --type=merge --patch="spec: {ports: [{name: http, port: %d}]}" && %s && %s`,
				object, moved, wait, request),
		},
		{
			"Delete a child and watch it come back",
			"kubectl delete " + deployment + " && kubectl wait --for=create " + deployment + " && kubectl rollout status " + deployment,
		},
		{
			"Replace its Pods and nothing else",
			`kubectl patch ` + object + ` --type=merge --patch="spec: {forceRedeploy: now}" && ` + wait +
				" && kubectl get pods -n " + instanceNamespace,
		},
		{"Read what each field means", "kubectl explain nginxoperator.spec"},
	}) + d.removal(instanceNamespace)
}

// hint is a command and what it shows.
type hint struct{ what, command string }

// list writes commands as they are typed.
func (d *demo) list(hints []hint) string {
	var out strings.Builder
	for _, hint := range hints {
		fmt.Fprintf(&out, "  # %s\n  %s\n\n", hint.what, d.line(hint.command))
	}
	return out.String()
}

// removal says how to remove the instances of a namespace and the operator.
func (d *demo) removal(namespace string) string {
	if d.local {
		return "  # Stop the cluster; nothing is left behind\n  make cluster-down\n"
	}
	return fmt.Sprintf("  # Remove the instance, then the operator\n  %s\n  %s\n",
		d.line("kubectl delete namespace "+namespace), d.line("kubectl delete namespace "+operatorNamespace))
}
