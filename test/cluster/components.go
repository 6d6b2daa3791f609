package main

// This file holds the table of the node's components: how each is started and how it is known to work.

// component is one process of the cluster.
type component struct {
	name string
	// args is the command line with the paths as the node sees them.
	args []string
	env  []string
	// health is the URL that answers 200 once the component works; without one, socket is.
	health string
	socket bool
}

const (
	etcdURL      = "http://127.0.0.1:2379"
	apiServerURL = "https://" + apiServerAddress
	registryURL  = "https://" + registryAddress
)

var (
	etcdComponent = component{
		name: "etcd", health: etcdURL + "/health",
		args: []string{
			nodeBinDir + "/etcd",
			"--data-dir=/var/lib/etcd",
			"--listen-client-urls=" + etcdURL,
			"--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=http://127.0.0.1:2380",
			"--log-level=warn",
			// What it holds is lost with the machine anyway.
			"--unsafe-no-fsync",
		},
	}
	registryComponent = component{
		name: "registry", health: registryURL + "/v2/",
		args: []string{nodeBinDir + "/registry", "serve", nodeConfigDir + "/registry.yaml"},
		env:  []string{"OTEL_TRACES_EXPORTER=none"},
	}
	gatewayComponent = component{
		name: "gateway", health: "https://" + gatewayAddress + "/v2/",
		args: []string{nodeBinDir + "/cluster", gatewayCommand},
	}
	containerdComponent = component{
		name: "containerd", socket: true,
		args: []string{nodeBinDir + "/containerd", "--config=" + nodeConfigDir + "/containerd.toml", "--log-level=warn"},
	}
	apiServerComponent = component{
		name: "kube-apiserver", health: apiServerURL + "/readyz",
		args: []string{
			nodeBinDir + "/kube-apiserver",
			"--advertise-address=" + nodeIP,
			"--allow-privileged",
			"--authorization-mode=Node,RBAC",
			"--client-ca-file=" + nodePKIDir + "/ca.crt",
			"--etcd-servers=" + etcdURL,
			"--secure-port=6443",
			"--service-cluster-ip-range=" + serviceCIDR,
			"--tls-cert-file=" + nodePKIDir + "/apiserver.crt",
			"--tls-private-key-file=" + nodePKIDir + "/apiserver.key",
			// Tokens of service accounts.
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + nodePKIDir + "/service-accounts.key",
			"--service-account-signing-key-file=" + nodePKIDir + "/service-accounts.key",
			// kubectl logs and exec.
			"--kubelet-client-certificate=" + nodePKIDir + "/admin.crt",
			"--kubelet-client-key=" + nodePKIDir + "/admin.key",
			"--kubelet-certificate-authority=" + nodePKIDir + "/ca.crt",
			"--kubelet-preferred-address-types=InternalIP",
			// Aggregated APIs, such as OLM's packageserver.
			"--enable-aggregator-routing",
			"--proxy-client-cert-file=" + nodePKIDir + "/front-proxy.crt",
			"--proxy-client-key-file=" + nodePKIDir + "/front-proxy.key",
			"--requestheader-allowed-names=front-proxy",
			"--requestheader-client-ca-file=" + nodePKIDir + "/front-proxy-ca.crt",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-username-headers=X-Remote-User",
			// Tests count the requests of the operator.
			"--audit-policy-file=" + nodeConfigDir + "/audit-policy.yaml",
			"--audit-log-path=/var/log/audit.log",
			"--audit-log-maxsize=200",
			"--audit-log-maxbackup=2",
		},
	}
	controllerManagerComponent = component{
		name: "kube-controller-manager", health: "https://127.0.0.1:10257/healthz",
		args: []string{
			nodeBinDir + "/kube-controller-manager",
			"--allocate-node-cidrs",
			"--authentication-kubeconfig=" + nodeStateDir + "/controller-manager.kubeconfig",
			"--authorization-kubeconfig=" + nodeStateDir + "/controller-manager.kubeconfig",
			"--bind-address=127.0.0.1",
			"--cluster-cidr=" + podCIDR,
			"--cluster-signing-cert-file=" + nodePKIDir + "/ca.crt",
			"--cluster-signing-key-file=" + nodePKIDir + "/ca.key",
			"--controllers=*",
			"--kube-api-burst=400",
			"--kube-api-qps=200",
			"--kubeconfig=" + nodeStateDir + "/controller-manager.kubeconfig",
			"--leader-elect=false",
			"--root-ca-file=" + nodePKIDir + "/ca.crt",
			"--service-account-private-key-file=" + nodePKIDir + "/service-accounts.key",
			"--tls-cert-file=" + nodePKIDir + "/local.crt",
			"--tls-private-key-file=" + nodePKIDir + "/local.key",
			"--use-service-account-credentials",
		},
	}
	schedulerComponent = component{
		name: "kube-scheduler", health: "https://127.0.0.1:10259/healthz",
		args: []string{
			nodeBinDir + "/kube-scheduler",
			"--authentication-kubeconfig=" + nodeStateDir + "/scheduler.kubeconfig",
			"--authorization-kubeconfig=" + nodeStateDir + "/scheduler.kubeconfig",
			"--bind-address=127.0.0.1",
			"--kubeconfig=" + nodeStateDir + "/scheduler.kubeconfig",
			"--leader-elect=false",
			"--tls-cert-file=" + nodePKIDir + "/local.crt",
			"--tls-private-key-file=" + nodePKIDir + "/local.key",
		},
	}
	kubeletComponent = component{
		name: "kubelet", health: "http://127.0.0.1:10248/healthz",
		args: []string{
			nodeBinDir + "/kubelet",
			"--config=" + nodeConfigDir + "/kubelet.yaml",
			"--hostname-override=" + nodeName,
			"--kubeconfig=" + nodeStateDir + "/kubelet.kubeconfig",
			"--node-ip=" + nodeIP,
			"--root-dir=/var/lib/kubelet",
		},
	}
	proxyComponent = component{
		name: "kube-proxy", health: "http://127.0.0.1:10256/livez",
		args: []string{
			nodeBinDir + "/kube-proxy",
			"--config=" + nodeConfigDir + "/kube-proxy.yaml",
			"--hostname-override=" + nodeName,
		},
	}
	corednsComponent = component{
		name: "coredns", health: "http://127.0.0.1:8181/ready",
		args: []string{nodeBinDir + "/coredns", "-conf", nodeConfigDir + "/Corefile"},
	}
)

// components in the order in which they are started.
var components = []component{
	etcdComponent, registryComponent, gatewayComponent, containerdComponent, apiServerComponent,
	controllerManagerComponent, schedulerComponent, kubeletComponent, proxyComponent, corednsComponent,
}

// nodePath is where the components look for programs: the project's tools before those of the system.
const nodePath = nodeBinDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
