package main

// This file has the instances that live through an upgrade.

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fleet are instances, each with a port of its own, so that no answer can be right by chance.
type fleet []member

type member struct {
	name           string
	port, replicas int64
}

func newFleet() fleet {
	out := fleet{{fleetInstance, fleetPort, 2}}
	for i := range int64(bystanders) {
		out = append(out, member{fmt.Sprintf("object-%d", i), 10000 + i, 0})
	}
	return out
}

// manifest declares the instances at v1alpha1.
func (f fleet) manifest() string {
	var out strings.Builder
	for _, one := range f {
		fmt.Fprintf(&out, `---
apiVersion: operator.example.com/v1alpha1
kind: NginxOperator
metadata:
  name: %s
  namespace: %s
spec:
  port: %d
  replicas: %d
`, one.name, fleetNamespace, one.port, one.replicas)
	}
	return out.String()
}

// check returns an error where a list of instances in a version is wrong: each has to be there with its port.
func (f fleet) check(version string, items []unstructured.Unstructured) error {
	found := map[string]int64{}
	for i := range items {
		found[items[i].GetName()] = portAt(version, &items[i])
	}
	var errs []error
	for _, one := range f {
		if port, there := found[one.name]; !there {
			errs = append(errs, fmt.Errorf("%s is not in the list", one.name))
		} else if port != one.port {
			errs = append(errs, fmt.Errorf("%s has port %d instead of %d", one.name, port, one.port))
		}
	}
	return errors.Join(errs...)
}

// portAt returns the port of an instance where a version has it, 0 where it is not: v1alpha1 has one, v1alpha2 a list.
func portAt(version string, object *unstructured.Unstructured) int64 {
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	if version == finalAPI {
		ports, _, _ := unstructured.NestedSlice(spec, "ports")
		if len(ports) == 0 {
			return 0
		}
		spec, _ = ports[0].(map[string]any)
	}
	port, _, _ := unstructured.NestedInt64(spec, "port")
	return port
}
