package main

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/example/nginx-operator/internal/wellknown"
)

// configNamespace is the namespace of config/default, and managerRole is its ClusterRole for what
// is in namespaces.
const (
	configNamespace = "nginx-operator-system"
	managerRole     = wellknown.ManagerRole
	manager         = "[name=manager]"
)

// policyKind and policyBindingKind are the kinds of the policies that a limited installation needs.
const (
	policyKind        = "ValidatingAdmissionPolicy"
	policyBindingKind = "ValidatingAdmissionPolicyBinding"
)

// metricsSelector is the path to the namespaces whose Pods reach the metrics.
var metricsSelector = []string{"spec", "ingress", "1", "from", "0", "namespaceSelector"}

// portNames are the names of the ports of the operator's container.
var portNames = []string{"metrics", "probes", "webhooks"}

// port returns the expression for the number of a port of the operator's container.
func port(name string) string {
	return `{{ include "nginx-operator.port" (dict "root" $ "name" "` + name + `") }}`
}

// fileOf returns the name of the template that contains an object.
func fileOf(object *resource.Resource) string {
	if object.GetLabels()["app.kubernetes.io/component"] == "monitoring" {
		return "monitoring"
	}
	switch kind := object.GetKind(); kind {
	case "CustomResourceDefinition":
		return "crd"
	case "NetworkPolicy":
		return "networkpolicy"
	case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return "rbac"
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", policyKind, policyBindingKind:
		return "webhooks"
	default:
		return "manager"
	}
}

// convert returns the template of an object, or "" for the Namespace, which Helm creates.
func convert(object *resource.Resource) (string, error) {
	kind := object.GetKind()
	if kind == "Namespace" {
		return "", nil
	}
	if kind == "ClusterRoleBinding" && reference(object, "name") == managerRole {
		return convertBinding(object)
	}
	return convertTo(object, editsOf(object))
}

// conversion changes a document. It returns the condition for the object, or "" if it always
// exists.
type conversion func(d *document) (condition string)

func editsOf(object *resource.Resource) conversion {
	switch {
	case fileOf(object) == "monitoring":
		return convertMonitoring
	case object.GetKind() == "CustomResourceDefinition":
		return func(d *document) string {
			d.add("{{- if .Values.crds.keep }}\nhelm.sh/resource-policy: keep\n{{- end }}", "metadata", "annotations")
			return ".Values.crds.enabled"
		}
	case object.GetKind() == "NetworkPolicy":
		return func(d *document) string {
			d.set("{{- toYaml .Values.networkPolicy.metricsNamespaces | nindent INDENT }}", metricsSelector...)
			d.set(port("webhooks"), "spec", "ingress", "0", "ports", "0", "port")
			d.set(port("metrics"), "spec", "ingress", "1", "ports", "0", "port")
			return ".Values.networkPolicy.enabled"
		}
	case object.GetKind() == policyKind, object.GetKind() == policyBindingKind:
		return func(*document) string { return ".Values.watchNamespaces" }
	case object.GetKind() == "Deployment":
		return convertDeployment
	}
	return func(*document) string { return "" }
}

// convertTo returns the template of an object after a conversion and what all objects require.
func convertTo(object *resource.Resource, change conversion) (string, error) {
	d := &document{node: object.Copy()}
	condition := change(d)
	d.replaceScalars(configNamespace, "{{ $.Release.Namespace | quote }}")
	d.add(`{{- include "nginx-operator.labels" (dict "root" $`+d.moreLabels+`) | nindent INDENT }}`, "metadata", "labels")
	text, err := d.text()
	if err != nil {
		return "", err
	}
	if strings.Contains(text, configNamespace) {
		return "", fmt.Errorf("a text contains the namespace %s, which the chart cannot replace", configNamespace)
	}
	text = "---\n" + text
	if condition != "" {
		text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
	}
	return text, nil
}

// convertDeployment makes the values for the operator's Pods count.
func convertDeployment(d *document) string {
	pod := func(path ...string) []string { return append([]string{"spec", "template", "spec"}, path...) }
	container := func(path ...string) []string { return pod(append([]string{"containers", manager}, path...)...) }
	d.set("{{ .Values.replicas }}", "spec", "replicas")
	// On the network of the nodes, a further Pod needs a further node.
	d.set("{{ if .Values.hostNetwork }}0{{ else }}1{{ end }}", "spec", "strategy", "rollingUpdate", "maxSurge")
	d.set("{{ if .Values.hostNetwork }}1{{ else }}0{{ end }}", "spec", "strategy", "rollingUpdate", "maxUnavailable")
	d.add("{{- with .Values.commonLabels }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}", "spec", "template", "metadata", "labels")
	d.add("{{- with .Values.podAnnotations }}\n{{- toYaml . | nindent INDENT }}\n{{- end }}", "spec", "template", "metadata", "annotations")
	d.set(`{{ include "nginx-operator.image" . | quote }}`, container("image")...)
	d.set("{{ .Values.image.pullPolicy }}", container("imagePullPolicy")...)
	d.set("{{ .Values.operands.nginx.image | quote }}", container("env", "[name=RELATED_IMAGE_NGINX]", "value")...)
	d.set("{{ .Values.operands.exporter.image | quote }}", container("env", "[name=RELATED_IMAGE_NGINX_PROMETHEUS_EXPORTER]", "value")...)
	d.set("{{ .Values.operands.requestMetrics.image | quote }}", container("env", "[name=RELATED_IMAGE_NGINX_REQUEST_METRICS]", "value")...)
	for _, name := range portNames {
		d.set(port(name), container("ports", "[name="+name+"]", "containerPort")...)
	}
	d.add("{{- with include \"nginx-operator.portFlags\" . | trim }}\n{{- . | nindent INDENT }}\n{{- end }}\n"+
		"{{- with .Values.watchNamespaces }}\n- {{ join \",\" . | printf \"--watch-namespaces=%s\" | quote }}\n{{- end }}\n"+
		"{{- range .Values.extraArgs }}\n- {{ . | quote }}\n{{- end }}", container("args")...)
	d.set("{{- toYaml .Values.resources | nindent INDENT }}", container("resources")...)
	d.set("{{- toYaml .Values.affinity | nindent INDENT }}", pod("affinity")...)
	for _, name := range []string{"imagePullSecrets", "nodeSelector", "tolerations", "topologySpreadConstraints"} {
		d.add("{{- with .Values."+name+" }}\n"+name+":\n  {{- toYaml . | nindent INDENT }}\n{{- end }}", pod()...)
	}
	d.add("{{- with .Values.priorityClassName }}\npriorityClassName: {{ . | quote }}\n{{- end }}", pod()...)
	d.add("{{- if .Values.hostNetwork }}\nhostNetwork: true\n{{- end }}", pod()...)
	return ""
}

// convertMonitoring makes the values for config/monitoring count. Prometheus and Grafana find their
// objects by labels.
func convertMonitoring(d *document) string {
	const enabled = ".Values.monitoring.enabled"
	labels := func(value string) { d.moreLabels = ` "more" ` + value }
	switch d.node.GetKind() {
	case "ServiceMonitor":
		labels(".Values.monitoring.labels")
	case "PrometheusRule":
		labels(".Values.monitoring.labels")
		return "and " + enabled + " .Values.monitoring.rules.enabled"
	case "ConfigMap":
		// The default of the value has this label.
		if _, err := d.node.Pipe(kyaml.Lookup("metadata", "labels"), kyaml.Clear("grafana_dashboard")); err != nil {
			d.errs = append(d.errs, err)
		}
		labels(".Values.monitoring.dashboards.labels")
		return "and " + enabled + " .Values.monitoring.dashboards.enabled"
	}
	return enabled
}

// convertBinding returns the template of the ClusterRoleBinding of the manager role. With watched
// namespaces, a RoleBinding in each of them replaces it.
func convertBinding(object *resource.Resource) (string, error) {
	cluster, err := convertTo(object, func(*document) string { return "" })
	if err != nil {
		return "", err
	}
	each, err := convertTo(object, func(d *document) string {
		d.node.SetKind("RoleBinding")
		d.errs = append(d.errs, d.node.SetName("nginx-operator-watch-rolebinding"), d.node.SetNamespace("watched"))
		d.set("{{ . | quote }}", "metadata", "namespace")
		return ""
	})
	return "{{- range .Values.watchNamespaces }}\n" + each + "{{- else }}\n" + cluster + "{{- end }}\n", err
}

// reference returns a field of a binding's roleRef.
func reference(object *resource.Resource, field string) string {
	value, err := object.GetString("roleRef." + field)
	if err != nil {
		return ""
	}
	return value
}
