package nginxconf

import "github.com/example/nginx-operator/api/v1alpha2"

// Listening returns a function that reports whether the servers of a configuration listen on a TCP
// port for clients outside the Pod, and whether they serve TLS there. The function is nil if the
// configuration has a syntax error. Listening does not read included files.
func Listening(servers string) func(port int32) (listens, tls bool) {
	tree, problem := parse(servers)
	if problem != nil {
		return nil
	}

	c := newChecker(&v1alpha2.NginxOperatorSpec{})
	c.collect(tree, nil, contextHTTP)

	var all []listen
	for _, server := range c.topServers() {
		all = append(all, c.listens(server)...)
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
