package harness

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// OperatorNamespace, OperatorUser, and MetricsRole are names in config/default. LeaseName is the
// Lease of the leader. OperandImage and ExporterImage are images that the operands run.
const (
	OperatorNamespace = "nginx-operator-system"
	OperatorUser      = "system:serviceaccount:nginx-operator-system:nginx-operator-controller-manager"
	MetricsRole       = "nginx-operator-metrics-reader"
	LeaseName         = "nginx-operator.operator.example.com"
	OperandImage      = "docker.io/nginxinc/nginx-unprivileged:1.30.7"
	ExporterImage     = "docker.io/nginx/nginx-prometheus-exporter:1.5.1"
)

// MigrationPermissions are the RBAC permissions for a storage migration by Kubernetes.
// KubeMigratorPermissions are the RBAC permissions for a storage migration by
// kube-storage-version-migrator. Both have the format of Request.Permission.
var (
	MigrationPermissions = []string{
		"create storagemigration.k8s.io/storageversionmigrations", "get storagemigration.k8s.io/storageversionmigrations",
		"patch storagemigration.k8s.io/storageversionmigrations", "delete storagemigration.k8s.io/storageversionmigrations",
		"update apiextensions.k8s.io/customresourcedefinitions/status",
	}
	KubeMigratorPermissions = []string{
		"create migration.k8s.io/storageversionmigrations", "get migration.k8s.io/storageversionmigrations",
	}
)

// FullSpec returns a spec that uses fields that v1alpha1 does not have.
func FullSpec() v1alpha2.NginxOperatorSpec {
	return v1alpha2.NginxOperatorSpec{
		Replicas: ptr.To[int32](2),
		Ports: []v1alpha2.Port{
			{Name: "web", Port: 8000, Protocol: corev1.ProtocolTCP}, {Name: "other", Port: 8001, Protocol: corev1.ProtocolTCP},
		},
		Config: &v1alpha2.Config{Inline: "server {\n  listen 8000;\n  listen 8001;\n  listen 8443 ssl;\n" +
			"  ssl_certificate /etc/nginx/tls/cert/tls.crt;\n  ssl_certificate_key /etc/nginx/tls/cert/tls.key;\n" +
			"  location / {\n    return 200 \"<b>\";\n  }\n}\n"},
		TLS:          []v1alpha2.TLS{{SecretName: "cert", Port: ptr.To[int32](8443)}},
		Service:      &v1alpha2.Service{Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"example.com/a": "1"}},
		Resources:    &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		PodTemplate:  &v1alpha2.PodTemplate{NodeSelector: map[string]string{"disk": "fast"}},
		DrainSeconds: ptr.To[int32](60),
	}
}
