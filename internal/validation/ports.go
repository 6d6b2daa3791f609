package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
)

// numbers are the used ports of the Service and of nginx, with the fields that use them.
type numbers struct {
	errs             field.ErrorList
	service, listens map[int32]string
}

// take adds a port of the Service and the port on which nginx listens for it. label is the field
// that has the port of the Service.
func (n *numbers) take(port int32, targetPort *int32, at *field.Path, label string) {
	if by, isTaken := n.service[port]; isTaken {
		n.errs = append(n.errs, field.Invalid(at.Child("port"), port,
			fmt.Sprintf("%s already has this port; choose another port", by)))
		return
	}

	n.service[port] = label

	listens, from := port, at.Child("port")
	if targetPort != nil {
		listens, from, label = *targetPort, at.Child("targetPort"), at.Child("targetPort").String()
	}
	if by, isTaken := n.listens[listens]; isTaken {
		n.errs = append(n.errs, field.Invalid(from, listens,
			fmt.Sprintf("nginx already listens on this port for %s; choose another targetPort", by)))
		return
	}

	n.listens[listens] = label
}

// validatePorts rejects ports, including the defaults, that are used twice. A write at v1alpha1 can
// change a port, and never sees the schema's rules of v1alpha2.
func validatePorts(spec *v1alpha2.NginxOperatorSpec, path *field.Path) field.ErrorList {
	taken := numbers{service: map[int32]string{}, listens: map[int32]string{}}
	for i, port := range defaults.Ports(spec) {
		at := path.Child("ports").Index(i)
		label := at.Child("port").String()
		if spec.Ports == nil {
			label = "the default of " + path.Child("ports").String()
		}

		taken.take(port.Port, port.TargetPort, at, label)
		if defaults.IsTLS(port) && spec.Config == nil && len(spec.TLS) == 0 {
			taken.errs = append(taken.errs, field.Invalid(at.Child("appProtocol"), port.AppProtocol,
				"https requires a certificate; add one to tls, or add a server block with ssl to config"))
		}
	}

	nodePorts := map[int32]*int32{} // by the port of the first certificate on it
	for i, tls := range defaults.TLS(spec) {
		at := path.Child("tls").Index(i)
		if tls.Port == nil {
			continue
		}

		// With spec.config, certificates can share a port, because its servers select by name.
		if nodePort, isShared := nodePorts[*tls.Port]; isShared && spec.Config != nil {
			if tls.NodePort != nil && *tls.NodePort != ptr.Deref(nodePort, 0) {
				taken.errs = append(taken.errs, field.Invalid(at.Child("nodePort"), *tls.NodePort,
					"only the first certificate on a port can set nodePort; move nodePort to the first certificate"))
			}
			continue
		}

		nodePorts[*tls.Port] = tls.NodePort
		label := at.Child("port").String()
		if spec.TLS[i].Port == nil {
			label = "the default of " + label
		}

		taken.take(*tls.Port, tls.TargetPort, at, label)
	}

	return taken.errs
}
