// Package components defines the processes of the cluster and their configuration.
package components

import (
	"github.com/example/nginx-operator/test/cluster/internal/layout"
	"github.com/example/nginx-operator/test/cluster/internal/registry"
)

// Component is one process of the cluster.
type Component struct {
	Name string
	// Args is the command line, with paths in the node's mount namespace.
	Args []string
	Env  []string
	// Health is the URL that returns status 200 if the component works.
	Health string
	// Socket means that the component works if containerd's socket accepts connections.
	Socket bool
}

// Etcd, Registry, Gateway, Containerd, APIServer, and Kubelet are referenced by other packages. For
// the others, see Rest.
var (
	Etcd = Component{
		Name: "etcd", Health: layout.EtcdURL + "/health",
		Args: []string{
			layout.NodeBinDir + "/etcd",
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=" + layout.EtcdURL,
			"--advertise-client-urls=" + layout.EtcdURL,
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--log-level=warn",
			// The data does not outlive the machine anyway.
			"--unsafe-no-fsync",
		},
	}
	Registry = Component{
		Name: "registry", Health: layout.RegistryURL + "/v2/",
		Args: []string{layout.NodeBinDir + "/registry", "serve", layout.NodeConfigDir + "/registry.yaml"},
		Env:  []string{"OTEL_TRACES_EXPORTER=none"},
	}
	Gateway = Component{
		Name: "gateway", Health: "https://" + registry.GatewayAddress + "/v2/",
		Args: []string{layout.NodeBinDir + "/cluster", registry.GatewayCommand},
	}
	Containerd = Component{
		Name: "containerd", Socket: true,
		Args: []string{layout.NodeBinDir + "/containerd", "--config=" + layout.NodeConfigDir + "/containerd.toml", "--log-level=warn"},
	}
	APIServer = Component{
		Name: "kube-apiserver", Health: layout.APIServerURL + "/readyz",
		Args: []string{
			layout.NodeBinDir + "/kube-apiserver",
			"--advertise-address=" + layout.NodeIP,
			"--allow-privileged",
			"--authorization-mode=Node,RBAC",
			"--client-ca-file=" + layout.NodePKIDir + "/ca.crt",
			"--etcd-servers=" + layout.EtcdURL,
			"--secure-port=6443",
			"--service-cluster-ip-range=" + layout.ServiceCIDR,
			"--tls-cert-file=" + layout.NodePKIDir + "/apiserver.crt",
			"--tls-private-key-file=" + layout.NodePKIDir + "/apiserver.key",
			// For the tokens of service accounts.
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + layout.NodePKIDir + "/service-accounts.key",
			"--service-account-signing-key-file=" + layout.NodePKIDir + "/service-accounts.key",
			// For kubectl logs and exec.
			"--kubelet-client-certificate=" + layout.NodePKIDir + "/admin.crt",
			"--kubelet-client-key=" + layout.NodePKIDir + "/admin.key",
			"--kubelet-certificate-authority=" + layout.NodePKIDir + "/ca.crt",
			"--kubelet-preferred-address-types=InternalIP",
			// For aggregated APIs, such as OLM's packageserver.
			"--enable-aggregator-routing",
			"--proxy-client-cert-file=" + layout.NodePKIDir + "/front-proxy.crt",
			"--proxy-client-key-file=" + layout.NodePKIDir + "/front-proxy.key",
			"--requestheader-allowed-names=front-proxy",
			"--requestheader-client-ca-file=" + layout.NodePKIDir + "/front-proxy-ca.crt",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			// Tests count the requests of the operator.
			"--audit-policy-file=" + layout.NodeConfigDir + "/audit-policy.yaml",
			"--audit-log-path=/var/log/audit.log",
			"--audit-log-maxsize=200",
			"--audit-log-maxbackup=2",
		},
	}
	controllerManager = Component{
		Name: "kube-controller-manager", Health: "https://127.0.0.1:10257/healthz",
		Args: []string{
			layout.NodeBinDir + "/kube-controller-manager",
			"--allocate-node-cidrs",
			"--authentication-kubeconfig=" + layout.NodeStateDir + "/controller-manager.kubeconfig",
			"--authorization-kubeconfig=" + layout.NodeStateDir + "/controller-manager.kubeconfig",
			"--bind-address=127.0.0.1",
			"--cluster-cidr=" + layout.PodCIDR,
			"--cluster-signing-cert-file=" + layout.NodePKIDir + "/ca.crt",
			"--cluster-signing-key-file=" + layout.NodePKIDir + "/ca.key",
			"--controllers=*",
			// Frequent syncs keep tests of autoscaling short.
			"--horizontal-pod-autoscaler-sync-period=5s",
			"--kube-api-burst=400",
			"--kube-api-qps=200",
			"--kubeconfig=" + layout.NodeStateDir + "/controller-manager.kubeconfig",
			"--leader-elect=false",
			"--root-ca-file=" + layout.NodePKIDir + "/ca.crt",
			"--service-account-private-key-file=" + layout.NodePKIDir + "/service-accounts.key",
			"--tls-cert-file=" + layout.NodePKIDir + "/local.crt",
			"--tls-private-key-file=" + layout.NodePKIDir + "/local.key",
			"--use-service-account-credentials",
		},
	}
	scheduler = Component{
		Name: "kube-scheduler", Health: "https://127.0.0.1:10259/healthz",
		Args: []string{
			layout.NodeBinDir + "/kube-scheduler",
			"--authentication-kubeconfig=" + layout.NodeStateDir + "/scheduler.kubeconfig",
			"--authorization-kubeconfig=" + layout.NodeStateDir + "/scheduler.kubeconfig",
			"--bind-address=127.0.0.1",
			"--kubeconfig=" + layout.NodeStateDir + "/scheduler.kubeconfig",
			"--leader-elect=false",
			"--tls-cert-file=" + layout.NodePKIDir + "/local.crt",
			"--tls-private-key-file=" + layout.NodePKIDir + "/local.key",
		},
	}
	Kubelet = Component{
		Name: "kubelet", Health: "http://127.0.0.1:10248/healthz",
		Args: []string{
			layout.NodeBinDir + "/kubelet",
			"--config=" + layout.NodeConfigDir + "/kubelet.yaml",
			"--hostname-override=" + layout.NodeName,
			"--kubeconfig=" + layout.NodeStateDir + "/kubelet.kubeconfig",
			"--node-ip=" + layout.NodeIP,
			"--root-dir=/var/lib/kubelet",
		},
	}
	proxy = Component{
		Name: "kube-proxy", Health: "http://127.0.0.1:10256/livez",
		Args: []string{
			layout.NodeBinDir + "/kube-proxy",
			"--config=" + layout.NodeConfigDir + "/kube-proxy.yaml",
			"--hostname-override=" + layout.NodeName,
		},
	}
	metricsServer = Component{
		Name: "metrics-server", Health: "https://127.0.0.1:" + layout.MetricsPort + "/livez",
		Args: []string{
			layout.NodeBinDir + "/metrics-server",
			"--authentication-kubeconfig=" + layout.NodeStateDir + "/admin.kubeconfig",
			"--authorization-kubeconfig=" + layout.NodeStateDir + "/admin.kubeconfig",
			"--kubeconfig=" + layout.NodeStateDir + "/admin.kubeconfig",
			"--kubelet-certificate-authority=" + layout.NodePKIDir + "/ca.crt",
			"--kubelet-preferred-address-types=InternalIP",
			"--kubelet-request-timeout=5s",
			// Same interval as the kubelet.
			"--metric-resolution=10s",
			"--secure-port=" + layout.MetricsPort,
			"--tls-cert-file=" + layout.NodePKIDir + "/local.crt",
			"--tls-private-key-file=" + layout.NodePKIDir + "/local.key",
		},
	}
	coreDNS = Component{
		Name: "coredns", Health: "http://127.0.0.1:8181/ready",
		Args: []string{layout.NodeBinDir + "/coredns", "-conf", layout.NodeConfigDir + "/Corefile"},
	}
)

// First has the components that start before the API server works, in this order.
var First = []Component{Etcd, Registry, Gateway, Containerd, APIServer}

// Rest returns the components of parts of the cluster that start once the API server works.
func Rest(parts []layout.Part) (out []Component) {
	for _, part := range parts {
		switch part {
		case layout.Base:
			out = append(out, controllerManager, scheduler, Kubelet, proxy, coreDNS)
		case layout.Metrics:
			out = append(out, metricsServer)
		default: // its programs run in Pods, if at all
		}
	}
	return out
}

// Path is the PATH of the components: the project's tools come before the system's.
const Path = layout.NodeBinDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
