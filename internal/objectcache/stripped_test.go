package objectcache

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/example/nginx-operator/internal/cached"
)

// oneOf returns a random one of the values.
func oneOf[T any](random *rand.Rand, values ...T) T { return values[random.IntN(len(values))] }

// randomSource returns a random source of a projected volume.
func randomSource(random *rand.Rand) corev1.VolumeProjection {
	name := corev1.LocalObjectReference{Name: fmt.Sprintf("object-%d", random.IntN(1000))}
	return oneOf(random,
		corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: name, Items: []corev1.KeyToPath{{Key: "k", Path: "p"}}, Optional: ptr.To(true),
		}},
		corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: name}},
		corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
	)
}

// randomTemplate returns a random Pod template within the bounds of the schema: up to 16 volumes of
// the user with up to 16 sources each, and the volumes of the operator.
func randomTemplate(random *rand.Rand) corev1.PodTemplateSpec {
	configMap := func(volume, name string) corev1.Volume {
		reference := corev1.LocalObjectReference{Name: name}
		return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference, DefaultMode: ptr.To[int32](0o644)},
		}}
	}
	volumes := []corev1.Volume{configMap("config", "web-1"), {Name: "tmp"}}
	for i := range random.IntN(17) {
		volume := corev1.Volume{Name: fmt.Sprintf("volume-%d", i)}
		switch random.IntN(3) {
		case 0:
			volume.EmptyDir = &corev1.EmptyDirVolumeSource{}
		case 1:
			volume = configMap(volume.Name, fmt.Sprintf("theirs-%d", i))
		default:
			volume.Projected = &corev1.ProjectedVolumeSource{}
			for range 1 + random.IntN(16) {
				volume.Projected.Sources = append(volume.Projected.Sources, randomSource(random))
			}
		}
		volumes = append(volumes, volume)
	}
	if random.IntN(2) == 0 {
		volumes = append(volumes, configMap("content", "web-2"))
	}
	if random.IntN(2) == 0 {
		files := []corev1.VolumeProjection{randomSource(random), {ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: "web-3"},
		}}}
		volumes = append(volumes, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: files},
		}})
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Volumes: volumes, Containers: []corev1.Container{{Name: "nginx", Ports: manyPorts(3)}}}}
}

func randomIngress(random *rand.Rand) *networkingv1.Ingress {
	backend := func() *networkingv1.IngressBackend {
		return oneOf(random, nil, &networkingv1.IngressBackend{}, backendOn(0), backendOn(80), backendOn(8080))
	}
	ingress := &networkingv1.Ingress{Spec: networkingv1.IngressSpec{DefaultBackend: backend()}}
	for range random.IntN(3) {
		rule := networkingv1.IngressRule{Host: "a.example.com"}
		if random.IntN(3) > 0 {
			rule.HTTP = &networkingv1.HTTPIngressRuleValue{}
			for range random.IntN(3) {
				path := networkingv1.HTTPIngressPath{Path: "/"}
				if found := backend(); found != nil {
					path.Backend = *found
				}
				rule.HTTP.Paths = append(rule.HTTP.Paths, path)
			}
		}
		ingress.Spec.Rules = append(ingress.Spec.Rules, rule)
	}
	return ingress
}

func randomService(random *rand.Rand) *corev1.Service {
	service := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: oneOf(random, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer),
	}}
	for range random.IntN(4) {
		at := oneOf(random, corev1.LoadBalancerIngress{IP: "192.0.2.1", IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)},
			corev1.LoadBalancerIngress{Hostname: "lb.example.com"}, corev1.LoadBalancerIngress{})
		service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, at)
	}
	return service
}

func randomRoute(random *rand.Rand) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{}
	for range random.IntN(3) {
		rule := gatewayv1.HTTPRouteRule{}
		for range random.IntN(3) {
			backend := gatewayv1.HTTPBackendRef{}
			backend.Name, backend.Port = "web", oneOf(random, nil, ptr.To[int32](80), ptr.To[int32](8080))
			rule.BackendRefs = append(rule.BackendRefs, backend)
		}
		route.Spec.Rules = append(route.Spec.Rules, rule)
	}
	return route
}

// TestReadersOfStrippedObjects verifies that a function that reads an object returns the same
// result for the whole object, which the plugin reads from the API server, and for the object in
// the cache.
func TestReadersOfStrippedObjects(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test, to be repeated
		same := func(what string, whole, stripped any) {
			t.Helper()
			if diff := cmp.Diff(whole, stripped); diff != "" {
				t.Fatalf("seed %d: %s (-whole +stripped):\n%s", seed, what, diff)
			}
		}

		template := randomTemplate(random)
		replicaSet := &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To(random.Int32N(2)), Template: *template.DeepCopy()}}
		slimReplicaSet(replicaSet)
		same("ConfigMaps of a ReplicaSet", sets.New(cached.MountedConfigMaps(&template)...),
			sets.New(cached.MountedConfigMaps(cached.TemplateOf(replicaSet))...))

		deployment := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: *template.DeepCopy()}}
		slimDeployment(deployment)
		same("what Pods need", cached.ReferencesOf(&template.Spec), cached.ReferencesOf(&deployment.Spec.Template.Spec))

		whole := &corev1.Pod{Spec: template.Spec}
		pod := whole.DeepCopy()
		slimPod(pod)
		same("whether a Pod may see Secrets", cached.MaySeeSecrets(whole), cached.MaySeeSecrets(pod))

		ingress := randomIngress(random)
		stripped := ingress.DeepCopy()
		slimIngress(stripped)
		same("the port of an Ingress", cached.BackendPort(ingress), cached.BackendPort(stripped))
		if backend := stripped.Spec.DefaultBackend; backend != nil {
			same("the default backend", ingress.Spec.DefaultBackend.Service.Port.Number, backend.Service.Port.Number)
		}

		route := randomRoute(random)
		strippedRoute := route.DeepCopy()
		slimHTTPRoute(strippedRoute)
		same("the port of an HTTPRoute", cached.RoutePort(route), cached.RoutePort(strippedRoute))

		service := randomService(random)
		strippedService := service.DeepCopy()
		slimService(strippedService)
		same("the addresses of a Service", cached.BalancerAddresses(service), cached.BalancerAddresses(strippedService))
	}
}
