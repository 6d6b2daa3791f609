package nginxconf

import (
	"slices"

	"github.com/example/nginx-operator/api/v1alpha2"
)

// maxListened is more than the maximum number of ports of a spec.
const maxListened = 17

// Listening returns a function that reports whether the servers of a configuration listen on a TCP
// port for clients outside the Pod, and whether they serve TLS there. The function is nil if the
// configuration has a syntax error. Listening does not read included files.
func Listening(servers string) func(port int32) (listens, tls bool) {
	all, isValid := listensIn(servers)
	if !isValid {
		return nil
	}

	return func(port int32) (listens, tls bool) {
		for i := range all {
			if all[i].reaches(port) {
				listens, tls = true, tls || all[i].tls
			}
		}
		return listens, tls
	}
}

// Ports returns the first 17 ports for which Listening reports true, in the order of the text.
func Ports(servers string) []int32 {
	var ports []int32
	all, _ := listensIn(servers)
	for i := range all {
		for port := all[i].from; all[i].reaches(port) && len(ports) < maxListened; port++ {
			if !slices.Contains(ports, port) {
				ports = append(ports, port)
			}
		}
	}
	return ports
}

// listensIn returns the valid listen directives of a configuration, or false after a syntax error.
func listensIn(servers string) ([]listen, bool) {
	tree, problem := parse(servers)
	if problem != nil {
		return nil, false
	}

	c := newChecker(&v1alpha2.NginxOperatorSpec{})
	c.collect(tree, nil, contextHTTP)

	var all []listen
	for _, server := range c.topServers() {
		all = append(all, c.listens(server)...)
	}
	return all, true
}
