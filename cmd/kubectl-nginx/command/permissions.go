package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Permission is a permission that a command uses in the namespace of an instance.
type Permission struct {
	// Verb is a verb of RBAC, or several with commas.
	Verb string
	// Resources are resources with their API groups, as in `kubectl auth can-i`.
	Resources []string
	// For is the condition under which a call uses the permission, or "" if each call does.
	For string
	// Shows is the output that is omitted without the permission, or "" if the command fails then.
	Shows string
}

const (
	instanceResource = "nginxoperators.operator.example.com"
	unfiltered       = "without NAME"
)

var (
	// plannedResources are the resources of child objects that each plan gets.
	plannedResources = []string{
		"configmaps", "services", "deployments.apps", "horizontalpodautoscalers.autoscaling", "ingresses.networking.k8s.io",
		"httproutes.gateway.networking.k8s.io", "podmonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com",
	}
	otherResources = []string{"networkpolicies.networking.k8s.io", "poddisruptionbudgets.policy"}
	childResources = slices.Concat(plannedResources, otherResources)
)

// Permissions returns the permissions of each command. Their help and docs/guide/kubectl-nginx.md
// list them. A command without an entry sends no request.
func Permissions() map[string][]Permission {
	get := Permission{Verb: "get", Resources: []string{instanceResource}}
	list := Permission{Verb: "list", Resources: []string{instanceResource}, For: unfiltered}
	pods := Permission{Verb: "list", Resources: []string{"pods"}}
	change := []Permission{get, {Verb: "patch", Resources: []string{instanceResource}}}
	return map[string][]Permission{
		"status": {
			get, list,
			{Verb: "get", Resources: childResources, Shows: "the state of the child objects"},
			{Verb: "list", Resources: []string{"pods"}, Shows: "the Pods"},
		},
		"plan": {
			{Verb: "get,patch", Resources: []string{instanceResource}},
			{Verb: "create", Resources: []string{instanceResource}, For: "for new instances"},
			{Verb: "get,create,patch", Resources: []string{"configmaps", "secrets"}, For: "if the manifests have them"},
			{Verb: "get", Resources: []string{"configmaps", "secrets"}, For: "if the spec references them"},
			{Verb: "get", Resources: plannedResources},
			{Verb: "get", Resources: otherResources, For: "for some changes"},
			{Verb: "list", Resources: []string{
				"configmaps", "poddisruptionbudgets.policy", "pods", "replicasets.apps", "controllerrevisions.apps",
			}},
			{Verb: "create,patch", Resources: childResources, Shows: "defaults and errors of the API server"},
		},
		"logs": {get, pods, {Verb: "get", Resources: []string{"pods/log"}}},
		"config": {
			get, pods,
			{Verb: "get", Resources: []string{"configmaps"}},
			{Verb: "get", Resources: []string{
				"services", "deployments.apps", "ingresses.networking.k8s.io", "httproutes.gateway.networking.k8s.io",
			}, For: "with --diff"},
			{Verb: "list", Resources: []string{"configmaps", "replicasets.apps", "controllerrevisions.apps"}, For: "with --diff"},
			{Verb: "get", Resources: []string{"secrets"}, For: "with --diff, if the spec references them"},
		},
		"top":     {get, list, pods, {Verb: "get", Resources: []string{"pods/proxy"}}},
		"restart": change,
		"pause":   change,
		"resume":  change,
		"rollback": {
			get,
			{Verb: "update", Resources: []string{instanceResource}},
			{Verb: "get", Resources: []string{"controllerrevisions.apps"}},
		},
	}
}

// String returns the permission as a line of a command's help.
func (p Permission) String() string {
	line := strings.ReplaceAll(p.Verb, ",", ", ") + " " + strings.Join(p.Resources, ", ")
	if p.For != "" {
		line += " (" + p.For + ")"
	}
	if p.Shows != "" {
		line += " (optional, for " + p.Shows + ")"
	}
	return line
}

func addPermissions(root *cobra.Command) {
	permissions := Permissions()
	for _, cmd := range root.Commands() {
		var lines []string
		for _, permission := range permissions[cmd.Name()] {
			lines = append(lines, wrapped(permission.String()))
		}
		if len(lines) > 0 {
			cmd.Long += "\n\nRBAC permissions in the namespace of the instance:\n" + strings.Join(lines, "\n")
		}
	}
}

// wrapped returns a list item with lines of at most 95 columns.
func wrapped(text string) string {
	item, column := "  -", 3
	for word := range strings.FieldsSeq(text) {
		if column+1+len(word) > 95 {
			item, column = item+"\n   ", 4
		}
		item, column = item+" "+word, column+1+len(word)
	}
	return item
}

// Rules returns a rule of a role for each verb and resource.
func (p Permission) Rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for verb := range strings.SplitSeq(p.Verb, ",") {
		for _, resource := range p.Resources {
			parsed := schema.ParseGroupResource(resource)
			rules = append(rules, rbacv1.PolicyRule{
				Verbs: []string{verb}, APIGroups: []string{parsed.Group}, Resources: []string{parsed.Resource},
			})
		}
	}
	return rules
}
