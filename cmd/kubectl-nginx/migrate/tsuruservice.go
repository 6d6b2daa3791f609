package migrate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
)

const (
	// Names of ports in tsuru's operator (pkg/k8s/k8s.go:35 to 42).
	tsuruHTTP       = "http"
	tsuruHTTPS      = "https"
	tsuruProxyHTTP  = "proxy-http"
	tsuruProxyHTTPS = "proxy-https"
	// tsuruOverHTTP sends port 443 to the port for plain HTTP (pkg/k8s/k8s.go:63 and 297).
	tsuruOverHTTP = "nginx.tsuru.io/https-over-http"
	// tsuruIPv6 adds an Ingress for IPv6 (controllers/nginx_controller.go:40 and 322).
	tsuruIPv6 = "nginx.tsuru.io/allocate-gcp-ipv6"
)

// Ports of tsuru's Service (pkg/k8s/k8s.go:255).
const (
	plainPort  int32 = 80
	securePort int32 = 443
)

// tsuruPorts converts ports 80 and 443. The Pod template only selects where nginx listens.
func (r *Result) tsuruPorts(nginx source, service string, known listening) {
	pod := nginx.in("podTemplate")
	numbers := map[string]int32{tsuruHTTP: 8080, tsuruHTTPS: 8443} // pkg/k8s/k8s.go:640
	if pod.fields["hostNetwork"] == true {
		numbers = map[string]int32{tsuruHTTP: 80, tsuruHTTPS: 443}
	}

	declared := containerPorts(pod.list("ports"))
	for _, port := range declared {
		numbers[port.Name] = port.ContainerPort
	}

	plain, secure := tsuruHTTP, tsuruHTTPS
	isLoadBalancer := nginx.in("service").fields["type"] == string(corev1.ServiceTypeLoadBalancer)
	if isLoadBalancer && numbers[tsuruProxyHTTP]+numbers[tsuruProxyHTTPS] > 0 { // pkg/k8s/k8s.go:256
		plain, secure = tsuruProxyHTTP, tsuruProxyHTTPS
	}

	if nginx.take("service", "annotations", tsuruOverHTTP) == "true" && secure == tsuruHTTPS {
		nginx.lose("service.annotations."+tsuruOverHTTP, fmt.Sprintf("two ports of the Service cannot have the same targetPort, so port %d is "+
			"omitted; let a server listen on another number than %d, too, and add it to spec.ports", securePort, numbers[plain]))
		delete(numbers, secure)
	}

	if numbers[plain] != 0 {
		r.tsuruPlain(plain, numbers[plain], numbers[secure], known)
	}
	if numbers[secure] != 0 {
		r.tsuruSecure(secure, numbers[secure], known)
	}

	r.closedPorts(slices.DeleteFunc(declared, func(port corev1.ContainerPort) bool {
		return port.Name == plain || port.Name == secure
	}), service)
}

func (r *Result) tsuruPlain(name string, number, secure int32, known listening) {
	isTLS := false
	if known != nil {
		var listens bool
		listens, isTLS = known(number)
		if listensSecure, _ := known(secure); listensSecure && !listens {
			r.Object.Spec.Ports = []v1alpha2.Port{}
			r.omitted(plainPort, number)
			return
		}
	}
	r.tsuruPort(name, plainPort, number, isTLS)
}

func (r *Result) tsuruSecure(name string, number int32, known listening) {
	spec := &r.Object.Spec
	var listens, isTLS bool
	if known != nil {
		listens, isTLS = known(number)
	}

	switch {
	case known != nil && !listens:
		r.omitted(securePort, number)
	case len(spec.TLS) > 0 && (isTLS || known == nil):
		for i := range spec.TLS {
			if i == 0 || spec.Config != nil { // without config, each port has one certificate
				spec.TLS[i].Port, spec.TLS[i].TargetPort = ptr.To(securePort), ptr.To(number)
			}
		}
	case known == nil:
		r.check("port %d of tsuru's Service is omitted, because spec.tls has no certificate; if nginx listens on its targetPort %d, add the "+
			"port to spec.ports, with appProtocol https if nginx serves TLS", securePort, number)
	default:
		r.tsuruPort(name, securePort, number, isTLS)
	}
}

func (r *Result) tsuruPort(name string, number, target int32, isTLS bool) {
	port := v1alpha2.Port{Name: name, Port: number}
	if target != number {
		port.TargetPort = ptr.To(target)
	}
	if isTLS {
		port.AppProtocol = "https"
	}

	r.Object.Spec.Ports = append(r.Object.Spec.Ports, port)
}

func (r *Result) omitted(port, target int32) {
	r.check("port %d of tsuru's Service is omitted, because no server in the text of the configuration listens on its targetPort %d; if an "+
		"included file has one, set the port in spec.tls or spec.ports", port, target)
}

// tsuruService converts the Service, except for its ports (pkg/k8s/k8s.go:202).
func (r *Result) tsuruService(from source) {
	from.dropDefault(map[string]any{"usePodSelector": true})
	if from.fields["usePodSelector"] == false {
		from.lose("usePodSelector", whyNot("usePodSelector"))
	}

	var service v1alpha2.Service
	from.pick(&service, "type", "externalTrafficPolicy")
	service.Labels, service.Annotations = r.usersOwn(from, "labels"), r.usersOwn(from, "annotations")
	if service.Type == "" || service.Type == corev1.ServiceTypeClusterIP {
		service.Type, service.ExternalTrafficPolicy = "", "" // tsuru ignores it, too
	}

	r.Object.Spec.Service = unlessEmpty(service)
}

// tsuruIngress converts the Ingress (pkg/k8s/k8s.go:353). hosts has the Secrets by host name.
func (r *Result) tsuruIngress(from source, hosts map[string]string) {
	var ingress v1alpha2.Ingress
	from.into(&ingress.ClassName, "ingressClassName")
	if from.take("annotations", tsuruIPv6) == "true" {
		from.lose("annotations."+tsuruIPv6, "the operator creates one Ingress; create the one for IPv6 yourself")
	}

	ingress.Annotations = r.usersOwn(from, "annotations")
	if labels := from.take("labels"); !isNothing(labels) {
		from.lose("labels", "spec.expose.ingress has no labels")
	}
	for _, host := range slices.Sorted(maps.Keys(hosts)) {
		ingress.Hosts = append(ingress.Hosts, v1alpha2.IngressHost{Host: host, TLSSecretName: hosts[host]})
	}

	if len(ingress.Hosts) == 0 {
		from.lose("", "an Ingress requires host names, and spec.tls has none; set spec.expose.ingress")
		clear(from.fields)
		return
	}

	from.lose("", "tsuru's Ingress also routes the requests for all other hosts; spec.expose.ingress.hosts has only those of spec.tls")
	r.Object.Spec.Expose = &v1alpha2.Expose{Ingress: &ingress}
}
