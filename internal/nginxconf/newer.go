package nginxconf

// newerDirectives are the directives of nginx 1.29 to 1.31 that crossplane's tables lack, or have
// with fewer arguments, as nginx's source declares them. Add new ones with each release of nginx
// until crossplane has them.
var newerDirectives = map[string]uint{
	// 1.29.3 and 1.29.4
	"add_header_inherit":  contextHTTP | contextServer | contextLocation | contextIf | argumentsOne,
	"add_trailer_inherit": contextHTTP | contextServer | contextLocation | contextIf | argumentsOne,
	"ssl_ech_file":        contextHTTP | contextServer | argumentsOne,
	// 1.29.6, 1.29.7, and 1.29.8
	"sticky":      contextUpstream | argumentsTwoUp,
	"keepalive":   contextUpstream | argumentsOne | argumentsTwo,
	"max_headers": contextHTTP | contextServer | argumentsOne,
	// 1.31.0
	"least_time":                   contextUpstream | argumentsOne | argumentsTwo,
	"tunnel_bind":                  contextProxied | argumentsOne | argumentsTwo,
	"tunnel_buffer_size":           contextProxied | argumentsOne,
	"tunnel_connect_timeout":       contextProxied | argumentsOne,
	"tunnel_next_upstream":         contextProxied | argumentsOneUp,
	"tunnel_next_upstream_timeout": contextProxied | argumentsOne,
	"tunnel_next_upstream_tries":   contextProxied | argumentsOne,
	"tunnel_pass":                  contextServer | contextLocation | contextIf | argumentsNone | argumentsOne,
	"tunnel_read_timeout":          contextProxied | argumentsOne,
	"tunnel_send_lowat":            contextProxied | argumentsOne,
	"tunnel_send_timeout":          contextProxied | argumentsOne,
	"tunnel_socket_keepalive":      contextProxied | argumentsFlag,
	// 1.31.3 and, for client_body_early_read, later
	"client_body_early_read": contextHTTP | contextServer | argumentsOneUp,
	"fastcgi_socket_rcvbuf":  contextProxied | argumentsOne,
	"fastcgi_socket_sndbuf":  contextProxied | argumentsOne,
	"grpc_socket_rcvbuf":     contextProxied | argumentsOne,
	"grpc_socket_sndbuf":     contextProxied | argumentsOne,
	"proxy_socket_rcvbuf":    contextProxied | argumentsOne,
	"proxy_socket_sndbuf":    contextProxied | argumentsOne,
	"scgi_socket_rcvbuf":     contextProxied | argumentsOne,
	"scgi_socket_sndbuf":     contextProxied | argumentsOne,
	"tunnel_socket_rcvbuf":   contextProxied | argumentsOne,
	"tunnel_socket_sndbuf":   contextProxied | argumentsOne,
	"uwsgi_socket_rcvbuf":    contextProxied | argumentsOne,
	"uwsgi_socket_sndbuf":    contextProxied | argumentsOne,
	"xml_external_entities":  contextProxied | argumentsFlag,
	// This is older. The documentation, the source of the tables, lacks it.
	"epoll_events": contextEvents | argumentsOne,
}

// contextProxied are the contexts of most directives of the proxy modules.
const contextProxied = contextHTTP | contextServer | contextLocation

// matchNewer has the directives of newerDirectives.
var matchNewer = in(newerDirectives)
