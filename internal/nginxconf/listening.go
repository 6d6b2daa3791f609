package nginxconf

import "github.com/example/nginx-operator/api/v1alpha2"

// Listening returns the TCP ports on which the servers of a configuration listen for clients
// outside the Pod, and whether they serve TLS on a port. It returns nil if the configuration has a
// syntax error. It does not read included files.
func Listening(servers string) map[int32]bool {
	tree, problem := parse(servers)
	if problem != nil {
		return nil
	}
	c := &checker{
		spec: &v1alpha2.NginxOperatorSpec{}, named: map[string][]*directive{}, inBlock: map[blockAndName][]*directive{},
	}
	c.collect(tree, nil, contextHTTP)

	out := map[int32]bool{}
	for _, server := range c.topServers() {
		for _, l := range c.listens(server) {
			for port := l.from; port <= l.to; port++ {
				if l.reaches(port) {
					out[port] = out[port] || l.tls
				}
			}
		}
	}
	return out
}
