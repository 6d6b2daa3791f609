package storage

import (
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// complete adds the defaults of a kind to a written object, and validates the properties that the
// simulation depends on: immutable fields, and the schema of the NginxOperator. live is nil for a
// new object.
func (s *Store) complete(key Key, live, object map[string]any) error {
	if key.Resource == NginxOperators {
		return completeCustom(key, live, object)
	}
	typed, err := canonical(key.Resource, object)
	if err != nil {
		return err
	}
	clear(object)
	maps.Copy(object, typed)
	switch key.Resource {
	case Deployments:
		defaultDeployment(object)
	case ReplicaSets:
		setDefault(object, int64(1), "spec", "replicas")
	case Services:
		if err := s.completeService(key, live, object); err != nil {
			return err
		}
	case NetworkPolicies:
		setDefault(object, []any{"Ingress"}, "spec", "policyTypes")
	case Autoscalers:
		setDefault(object, int64(1), "spec", "minReplicas")
	case Secrets:
		setDefault(object, "Opaque", "type")
	}
	return validateUpdate(key, live, object)
}

func setDefault(object map[string]any, value any, path ...string) {
	if _, found, _ := unstructured.NestedFieldNoCopy(object, path...); !found {
		if err := unstructured.SetNestedField(object, value, path...); err != nil {
			panic(err) // the object has the structure of its type
		}
	}
}

func defaultDeployment(object map[string]any) {
	setDefault(object, int64(1), "spec", "replicas")
	setDefault(object, int64(10), "spec", "revisionHistoryLimit")
	setDefault(object, int64(600), "spec", "progressDeadlineSeconds")
	setDefault(object, "RollingUpdate", "spec", "strategy", "type")
	if kind, _, _ := unstructured.NestedString(object, "spec", "strategy", "type"); kind == "RollingUpdate" {
		setDefault(object, "25%", "spec", "strategy", "rollingUpdate", "maxSurge")
		setDefault(object, "25%", "spec", "strategy", "rollingUpdate", "maxUnavailable")
	}
	setDefault(object, int64(30), "spec", "template", "spec", "terminationGracePeriodSeconds")
	setDefault(object, "Always", "spec", "template", "spec", "restartPolicy")
	setDefault(object, "ClusterFirst", "spec", "template", "spec", "dnsPolicy")
	setDefault(object, "default-scheduler", "spec", "template", "spec", "schedulerName")
}

// immutable has the fields that a write cannot change.
var immutable = map[*Resource][]string{
	Deployments:         {"spec", "selector"},
	ReplicaSets:         {"spec", "selector"},
	ControllerRevisions: {"data"},
}

func validateUpdate(key Key, live, object map[string]any) error {
	if live == nil {
		return nil
	}
	if path := immutable[key.Resource]; path != nil {
		before, _, _ := unstructured.NestedFieldNoCopy(live, path...)
		after, _, _ := unstructured.NestedFieldNoCopy(object, path...)
		if !reflect.DeepEqual(before, after) {
			return invalid(key, field.Invalid(field.NewPath(path[0], path[1:]...), after, "field is immutable"))
		}
	}
	if live["immutable"] == true {
		if object["immutable"] != true {
			return invalid(key, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		for _, name := range []string{"data", "binaryData", "stringData"} {
			if !reflect.DeepEqual(live[name], object[name]) {
				return invalid(key, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
			}
		}
	}
	return nil
}

const (
	firstNodePort = 30000
	lastNodePort  = 32767
)

// completeService allocates the address and the node ports of a Service. An update without the
// address retains it.
func (s *Store) completeService(key Key, live, object map[string]any) error {
	setDefault(object, "ClusterIP", "spec", "type")
	setDefault(object, "None", "spec", "sessionAffinity")
	setDefault(object, "Cluster", "spec", "internalTrafficPolicy")
	if address, found, _ := unstructured.NestedFieldNoCopy(live, "spec", "clusterIP"); found {
		setDefault(object, address, "spec", "clusterIP")
	} else {
		s.addresses++
		setDefault(object, fmt.Sprintf("10.96.%d.%d", s.addresses/250, s.addresses%250+1), "spec", "clusterIP")
	}
	kind, _, _ := unstructured.NestedString(object, "spec", "type")
	public := kind == "NodePort" || kind == "LoadBalancer"
	used := s.nodePorts(key)
	for _, port := range portsOf(object) {
		setDefault(port, "TCP", "protocol")
		setDefault(port, port["port"], "targetPort")
		number, _ := port["nodePort"].(int64)
		switch {
		case !public:
			delete(port, "nodePort")
		case number != 0 && used[number]:
			return invalid(key, field.Invalid(field.NewPath("spec", "ports").Index(0).Child("nodePort"), number,
				"provided port is already allocated"))
		case number == 0:
			port["nodePort"] = s.freeNodePort(live, port, used)
		}
		if number, set := port["nodePort"].(int64); set {
			used[number] = true
		}
	}
	return nil
}

// freeNodePort returns the node port that the live Service has for the same port, or the first free
// one.
func (s *Store) freeNodePort(live, port map[string]any, used map[int64]bool) int64 {
	for _, before := range portsOf(live) {
		if number, set := before["nodePort"].(int64); set && before["port"] == port["port"] && !used[number] {
			return number
		}
	}
	for number := int64(firstNodePort); number <= lastNodePort; number++ {
		if !used[number] {
			return number
		}
	}
	panic("no free node port")
}

// nodePorts returns the node ports of all Services except one.
func (s *Store) nodePorts(but Key) map[int64]bool {
	out := map[int64]bool{}
	for _, service := range s.List(Services, "") {
		if service.Key == but {
			continue
		}
		for _, port := range portsOf(service.Object) {
			if number, set := port["nodePort"].(int64); set {
				out[number] = true
			}
		}
	}
	return out
}

func portsOf(service map[string]any) []map[string]any {
	list, _, _ := unstructured.NestedFieldNoCopy(service, "spec", "ports")
	elements, _ := list.([]any)
	var out []map[string]any
	for _, element := range elements {
		if port, ok := element.(map[string]any); ok {
			out = append(out, port)
		}
	}
	return out
}
