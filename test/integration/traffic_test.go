package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/wellknown"
)

// lastNodePort counts up in the part of the node port range from which the API server allocates no
// ports automatically.
var lastNodePort atomic.Int64

func newNodePort() int64 { return 30000 + lastNodePort.Add(1) }

// useOwnNodePorts gives an example unique node ports, because all namespaces share one range.
func useOwnNodePorts(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	for _, field := range []string{"ports", "tls"} {
		if items, isList, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", field); isList && object.GetKind() == "NginxOperator" {
			for _, item := range items.([]any) {
				if of := item.(map[string]any); of["nodePort"] != nil {
					of["nodePort"] = newNodePort()
				}
			}
		}
	}
}

// only is the shape of an instance without plain HTTP.
var only = shape{
	map[string]string{"tls-443": "443 tls-443"}, []string{"8443", "18080"}, map[string]int32{"tls-443": 8443, "health": 18080},
}

// TestWithoutPlainHTTP verifies that an instance without plain HTTP stays without it, no matter how
// clients write, read, and restore it.
func TestWithoutPlainHTTP(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, newSecret(namespace, "cert", newCertificate(t)))
	const spec = "{ports: [], tls: [{secretName: cert, port: 443, targetPort: 8443}]}"
	apply := func(version, spec string, owner client.FieldOwner) {
		t.Helper()
		manifest := specManifest(t, version, namespace, "web", spec)
		must(t, suite.admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(manifest), owner, client.ForceOwnership))
	}
	apply("v1alpha2", spec, applier)
	waitForShape(t, namespace, only)
	object := newInstance(namespace, "web")
	url := func(want string) {
		t.Helper()
		waitFor(t, func() error {
			if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.Status.URL != want {
				return errors.Join(fmt.Errorf("the URL is %q", object.Status.URL), err)
			}
			return nil
		})
	}
	url("https://web." + namespace + ".svc")
	conf := configOf(t, namespace)
	if strings.Contains(conf, "listen 8080") || !strings.Contains(conf, "listen 8443 ssl default_server;") {
		t.Errorf("nginx.conf\n%s", conf)
	}

	// Update with a typed client, and with a v1alpha1 client that does not know the empty list.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.ForceRedeploy = "1" })
	old := &v1alpha1.NginxOperator{}
	old.Namespace, old.Name = namespace, "web"
	update(t, old, func(o *v1alpha1.NginxOperator) { o.Spec.ForceRedeploy = "2" })
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.Ports == nil || len(object.Spec.Ports) > 0 || object.Spec.ForceRedeploy != "2" {
		t.Fatalf("after other clients the spec is %+v", object.Spec)
	}
	waitForShape(t, namespace, only)

	// While the object is blocked, its children are restored from the record.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cert"}}
	must(t, suite.admin.Delete(t.Context(), secret))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonReferenceNotFound)
	must(t, suite.admin.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}))
	waitForShape(t, namespace, only)
	create(t, newSecret(namespace, "cert", newCertificate(t)))
	waitForCondition(t, namespace, "web", v1alpha2.ConditionDegraded, metav1.ConditionFalse, v1alpha2.ReasonAsExpected)

	// Set a list, no list (the default port), and the empty list again. The API server tracks no
	// owner of an empty list. A server-side apply that removes the last port therefore has the same
	// result with and without an empty list. Only the next apply distinguishes the two.
	const cert = "tls: [{secretName: cert, port: 443, targetPort: 8443}]"
	apply("v1alpha2", "{ports: [{name: http, port: 8081}], "+cert+"}", applier)
	url("http://web." + namespace + ".svc:8081")
	apply("v1alpha2", "{"+cert+"}", applier)
	url("http://web." + namespace + ".svc:8080")
	must(t, suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if object.Spec.Ports != nil {
		t.Errorf("ports %#v are not declared any more", object.Spec.Ports)
	}
	apply("v1alpha2", spec, applier)
	url("https://web." + namespace + ".svc")
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = nil })
	url("http://web." + namespace + ".svc:8080")
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports = []v1alpha2.Port{} })
	url("https://web." + namespace + ".svc")
	waitForMarker(t, namespace)
	audited := len(audit(t))
	waitForMarker(t, namespace)
	if n := withoutEvents(writesOf(t, audited, namespace)); len(n) != 0 {
		t.Errorf("writes at the end: %v", n)
	}
}

// configOf returns the configuration of new Pods.
func configOf(t *testing.T, namespace string) string {
	t.Helper()
	return waitForChildren(t, namespace, "web").configMaps[0].Data["nginx.conf"]
}

// TestCertificatesShareAPort verifies that several certificates on one port share one Service port.
func TestCertificatesShareAPort(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Ports = []v1alpha2.Port{}
	object.Spec.Config = &v1alpha2.Config{}
	for _, host := range []string{"a", "b"} {
		create(t, newSecret(namespace, host, newCertificate(t)))
		object.Spec.TLS = append(object.Spec.TLS, v1alpha2.TLS{SecretName: host, Port: ptr.To[int32](443), TargetPort: ptr.To[int32](8443)})
		object.Spec.Config.Inline += fmt.Sprintf("server {\n  listen 8443 ssl;\n  server_name %[1]s.example.com;\n"+
			"  ssl_certificate /etc/nginx/tls/%[1]s/tls.crt;\n  ssl_certificate_key /etc/nginx/tls/%[1]s/tls.key;\n}\n", host)
	}
	create(t, object)
	waitForShape(t, namespace, only)
}

// TestNodePortsMove verifies that the Service has the declared node port. The node port moves to
// another Service port after all remaining Pods serve that port.
func TestNodePortsMove(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	nodePort := int32(newNodePort()) // #nosec G115 -- of the cluster's range
	object := newInstance(namespace, "web")
	object.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 8080, NodePort: &nodePort, AppProtocol: "kubernetes.io/ws"}}
	object.Spec.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort}
	create(t, object)
	has := func(numbers ...int32) {
		t.Helper()
		waitFor(t, func() error {
			got, err := childrenOf(t.Context(), namespace, "web")
			if err != nil || got.service == nil {
				return errors.Join(errors.New("no Service"), err)
			}
			var all, with []int32
			for _, port := range got.service.Spec.Ports {
				if all = append(all, port.Port); port.NodePort == nodePort {
					with = append(with, port.Port)
				}
				if port.NodePort == 0 {
					return fmt.Errorf("%d has no node port", port.Port)
				}
			}
			if diff := cmp.Diff(numbers[:1], with) + cmp.Diff(numbers[1:], all); diff != "" {
				return errors.New(diff)
			}
			return nil
		})
	}
	has(8080, 8080)
	if got := ptr.Deref(waitForChildren(t, namespace, "web").service.Spec.Ports[0].AppProtocol, ""); got != "kubernetes.io/ws" {
		t.Errorf("appProtocol %q", got)
	}
	// Another object cannot have the same node port, or one outside of the range. Only the status
	// reports this, because admission does not ask the API server about ports.
	for name, test := range map[string]struct {
		number int32
		want   string
	}{"outside": {443, "provided port is not in the valid range"}, "other": {nodePort, "provided port is already allocated"}} {
		refused := newInstance(namespace, name)
		refused.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 80, NodePort: &test.number}}
		refused.Spec.Service = &v1alpha2.Service{Type: corev1.ServiceTypeNodePort}
		create(t, refused)
		told := waitForCondition(t, namespace, name, v1alpha2.ConditionDegraded, metav1.ConditionTrue, v1alpha2.ReasonInvalidConfiguration)
		if want := fmt.Sprintf("spec.service: Invalid value: nodePort %d: %s", test.number, test.want); !strings.Contains(told.Message, want) {
			t.Errorf("want %q in %q", want, told.Message)
		}
	}
	old := newRevision(t, namespace, "web-a")
	waitUntilSeen(t, old.pod)
	update(t, object, func(o *v1alpha2.NginxOperator) {
		o.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 80, TargetPort: ptr.To[int32](8080), NodePort: &nodePort}}
	})
	has(8080, 80, 8080)
	waitForWeb(t, namespace, func(got children) error {
		if got.deployment.Spec.Template.Annotations[wellknown.AnnotationServicePorts] == "" {
			return errors.New("the Pods are those of before")
		}
		return nil
	})
	next := newRevision(t, namespace, "web-b")
	next.pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue},
	}}
	must(t, suite.admin.Status().Update(t.Context(), next.pod))
	waitForMarker(t, namespace)
	has(8080, 80, 8080)
	old.scaleDown(t)
	has(80, 80, 8080)
	old.drained(t)
	has(80, 80)
	// The node port stays if the spec no longer sets it, because no other node port is requested.
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Ports[0].NodePort = nil })
	waitForMarker(t, namespace)
	has(80, 80)
}

// TestAddressesOfALoadBalancer verifies that the status lists the addresses of a load balancer as
// soon as it has them. The URL uses the best address. Without the load balancer, the addresses are
// gone.
func TestAddressesOfALoadBalancer(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	object := newInstance(namespace, "web")
	object.Spec.Ports = []v1alpha2.Port{{Name: "http", Port: 80, TargetPort: ptr.To[int32](8080)}}
	object.Spec.Service = &v1alpha2.Service{Type: corev1.ServiceTypeLoadBalancer}
	create(t, object)
	service := waitForChildren(t, namespace, "web").service
	node := v1alpha2.Address{Type: v1alpha2.AddressNodePort, Value: fmt.Sprint(service.Spec.Ports[0].NodePort), Port: 80}
	tells := func(url string, addresses ...v1alpha2.Address) {
		t.Helper()
		waitFor(t, func() error {
			err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object)
			if diff := cmp.Diff(addresses, object.Status.Addresses); err != nil || diff != "" || object.Status.URL != url {
				return errors.Join(fmt.Errorf("the URL is %s, addresses (-want +got):\n%s", object.Status.URL, diff), err)
			}
			return nil
		})
	}
	tells("http://web."+namespace+".svc", node)
	makeReady(t, namespace, "web")
	waitForMarker(t, namespace)
	audited := len(audit(t))
	gets := func(ingress ...corev1.LoadBalancerIngress) {
		t.Helper()
		waitFor(t, func() error {
			if err := suite.admin.Get(t.Context(), client.ObjectKeyFromObject(service), service); err != nil {
				return err
			}
			service.Status.LoadBalancer.Ingress = ingress
			return suite.admin.Status().Update(t.Context(), service)
		})
	}
	gets(corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, corev1.LoadBalancerIngress{IP: "192.0.2.1"})
	tells("http://lb.example.com", v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerHostname, Value: "lb.example.com"},
		v1alpha2.Address{Type: v1alpha2.AddressLoadBalancerIP, Value: "192.0.2.1"}, node)
	waitForMarker(t, namespace)
	want := map[string]int{"nginxoperators/status": 1}
	if diff := cmp.Diff(want, withoutEvents(writesOf(t, audited, namespace))); diff != "" {
		t.Errorf("writes for an address (-want +got):\n%s", diff)
	}
	gets()
	tells("http://web."+namespace+".svc", node)
	update(t, object, func(o *v1alpha2.NginxOperator) { o.Spec.Service = nil })
	tells("http://web." + namespace + ".svc")
}
