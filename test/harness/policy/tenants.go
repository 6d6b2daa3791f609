package policy

// TenantSpecs are specs of NginxOperators in the namespace shop of docs/guide/multi-tenancy.md. The
// value is a part of the message with which the policy of the page refuses the spec, or empty if it
// allows the spec.
func TenantSpecs() map[string]string {
	const (
		domain, keys = "must be in the domain shop.example.com", " is not allowed in the namespace of a tenant"
		route        = "parentRefs: [{name: public, namespace: gateways}]"
		// Annotations from which controllers read names.
		alias = "nginx.ingress.kubernetes.io/server-alias"
		dns   = "external-dns.alpha.kubernetes.io/hostname"
		label = "service.beta.kubernetes.io/azure-dns-label-name"
	)
	service := func(fields string) string { return "{service: {" + fields + "}}" }
	pods := func(fields string) string { return "{podTemplate: {" + fields + "}}" }
	return map[string]string{
		"{}": "",

		"{image: 'docker.io/nginxinc/nginx-unprivileged:1.30.7'}":                     "",
		"{sidecars: [{name: a, image: 'registry.example.com/a:1'}, {name: b}]}":       "",
		"{image: 'docker.io/library/nginx:1'}":                                        "image docker.io/library/nginx:1 is not allowed",
		"{monitoring: {image: 'docker.io/a/b:1'}}":                                    "image docker.io/a/b:1 is not allowed",
		"{sidecars: [{name: a, image: 'registry.example.com.evil/a:1'}]}":             "image registry.example.com.evil/a:1 is not",
		"{initContainers: [{name: a, image: 'a:1'}]}":                                 "image a:1 is not allowed",
		"{patches: [{target: {kind: Service}, patch: 'metadata: {labels: {a: b}}'}]}": "spec.patches is not allowed",

		"{expose: {ingress: {hosts: [{host: shop.example.com}, {host: a.shop.example.com}]}}}":        "",
		"{expose: {ingress: {hosts: [{host: '*.shop.example.com'}]}}}":                                "",
		"{expose: {ingress: {hosts: [{host: other.example.com}]}}}":                                   domain,
		"{expose: {ingress: {hosts: [{host: workshop.example.com}]}}}":                                domain,
		"{expose: {ingress: {hosts: [{host: shop.example.com}, {host: '*.example.com'}]}}}":           domain,
		"{expose: {httpRoute: {hostnames: [shop.example.com, '*.shop.example.com'], " + route + "}}}": "",
		"{expose: {httpRoute: {hostnames: [shop.example.com, other.example.com], " + route + "}}}":    domain,
		"{expose: {httpRoute: {hostnames: ['*.example.com'], " + route + "}}}":                        domain,
		"{expose: {httpRoute: {hostnames: [], " + route + "}}}":                                       "needs hostnames",
		"{expose: {httpRoute: {" + route + "}}}":                                                      "needs hostnames",

		service("annotations: {example.com/team: a}, labels: {example.com/team: a}"): "",
		pods("annotations: {example.com/team: a}, labels: {example.com/team: a}"):    "",

		"{expose: {ingress: {hosts: [{host: shop.example.com}], annotations: {" + alias + ": a.example.com}}}}": alias + keys,

		service("annotations: {" + dns + ": a.example.com}"):               dns + keys,
		service("type: LoadBalancer, annotations: {" + label + ": other}"): label + keys,
		service("labels: {example.com/exported: 'true'}"):                  "example.com/exported" + keys,
		pods("annotations: {" + dns + ": a.example.com}"):                  dns + keys,
		pods("labels: {app: other}"):                                       "app" + keys,
	}
}
