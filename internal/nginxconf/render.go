package nginxconf

import (
	"errors"
	"math"
	"net/netip"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
)

// Directories and files of an operand.
const (
	// Directory has the configuration. The Deployment's command references nginx.conf in it.
	Directory = "/etc/nginx-operator"
	// TLSDirectory has a directory for each Secret of spec.tls, with its name.
	TLSDirectory = "/etc/nginx/tls"
	// FilesDirectory has the files of spec.files.
	FilesDirectory = "/etc/nginx/files"
	// ContentDirectory has the static files of spec.content.
	ContentDirectory = "/usr/share/nginx/html"
	// MimeTypes is the file of the image that every configuration includes.
	MimeTypes = "/etc/nginx/mime.types"
)

// Names of the files in Directory.
const (
	// MainFile is the operator's part.
	MainFile = "nginx.conf"
	// ServersFile is the user's part. MainFile includes it in the http context. With a mask, each key
	// has a file of its own instead.
	ServersFile = "servers.conf"
	// ModulesFile loads the modules of spec.nginx.modules. MainContextFile has spec.nginx.main, and
	// EventsFile spec.nginx.events.
	ModulesFile     = "modules.conf"
	MainContextFile = "main.conf"
	EventsFile      = "events.conf"
	// ResolverFile has the resolver of spec.nginx.resolver.
	ResolverFile = "resolver.conf"
)

// Files is the configuration of an operand: the text of each file in Directory, by name.
type Files map[string]string

// Render returns the configuration of a spec. servers is the text of spec.config. If it is nil, a
// default server listens on every port. nameservers are those that the cluster gives its Pods, if they
// are known. Render does not check the text; see Check.
func Render(spec *v1alpha2.NginxOperatorSpec, servers Servers, ipv6 bool, nameservers []string) (Files, error) {
	if size := servers.Size(); size > MaxBytes {
		return nil, errors.New(tooLarge(size).Message)
	}
	if resolver := defaults.Nginx(spec).Resolver; resolver != nil && len(resolver.Addresses)+len(nameservers) == 0 {
		return nil, errors.New("spec.nginx.resolver: the name servers of the cluster are unknown: the operator's /etc/resolv.conf is not " +
			"that of a Pod with dnsPolicy ClusterFirst; set addresses, or the operator's flag --cluster-nameservers")
	}

	slots <- struct{}{}
	defer func() { <-slots }()
	trees, _, _ := servers.parseAll(nil)
	return render(spec, servers, trees, ipv6, nameservers), nil
}

// render is Render with the directives of each file.
func render(spec *v1alpha2.NginxOperatorSpec, servers Servers, trees [][]*directive, ipv6 bool, nameservers []string) Files {
	tuning := defaults.Nginx(spec)
	params := assets.NginxConfParams{
		HealthPort:            defaults.HealthPort(spec),
		StatusPort:            defaults.StatusPort(spec),
		IPv6:                  ipv6,
		Workers:               workers(spec),
		WorkerConnections:     *tuning.WorkerConnections,
		ErrorLogLevel:         tuning.ErrorLogLevel,
		AccessLog:             *tuning.AccessLog,
		WorkerShutdownSeconds: defaults.DrainOf(spec).WorkerShutdown,
	}

	params.Given = map[string]bool{}
	for i, part := range servers {
		params.Includes = append(params.Includes, path.Join(Directory, part.file()))
		for _, d := range trees[i] {
			params.Given[d.name] = true
		}
	}

	for _, variable := range spec.Env {
		params.Environment = append(params.Environment, variable.Name)
	}

	for _, port := range defaults.Ports(spec) {
		if !defaults.IsTLS(port) {
			params.Ports = append(params.Ports, defaults.PortListens(port))
		} else if len(spec.TLS) > 0 {
			params.TLS = append(params.TLS, serverOf(spec.TLS[0], defaults.PortListens(port)))
		}
	}

	for _, tls := range defaults.TLS(spec) {
		if tls.Port != nil {
			params.TLS = append(params.TLS, serverOf(tls, defaults.TLSListens(tls)))
		}
	}

	files := Files{}
	for _, part := range servers {
		files[part.file()] = part.Text
	}

	add := func(include *string, name, text string) {
		if text != "" {
			files[name], *include = text, path.Join(Directory, name)
		}
	}
	add(&params.Modules, ModulesFile, loadLines(tuning.Modules))
	add(&params.MainContext, MainContextFile, tuning.Main)
	add(&params.Events, EventsFile, tuning.Events)
	add(&params.Resolver, ResolverFile, resolverLine(tuning.Resolver, nameservers))

	files[MainFile] = assets.NginxConf(params)
	return files
}

// resolverLine returns the resolver directive, or "" without one. nginx needs brackets around the
// addresses of IPv6.
func resolverLine(declared *v1alpha2.Resolver, nameservers []string) string {
	if declared == nil {
		return ""
	}
	if len(declared.Addresses) > 0 {
		nameservers = declared.Addresses
	}

	line := "resolver"
	for _, server := range nameservers {
		if address, err := netip.ParseAddr(server); err == nil && address.Is6() {
			server = "[" + server + "]"
		}
		line += " " + server
	}
	if declared.Valid != "" {
		line += " valid=" + declared.Valid
	}
	if !ptr.Deref(declared.IPv6, true) {
		line += " ipv6=off"
	}
	return line + ";\n"
}

// serverOf returns the default server for TLS on a port.
func serverOf(tls v1alpha2.TLS, port int32) assets.NginxTLS {
	directory := path.Join(TLSDirectory, tls.SecretName)
	return assets.NginxTLS{
		Port: port, Certificate: path.Join(directory, corev1.TLSCertKey), Key: path.Join(directory, corev1.TLSPrivateKeyKey),
	}
}

// maxWorkers is more than the CPU count of any node.
const maxWorkers = 1024

// workers returns spec.nginx.workerProcesses, or else the CPU limit rounded up, or 0 without a
// limit. nginx itself would count the node's CPUs, even if its container cannot use them. The limit
// can be any number, so the result is approximate.
func workers(spec *v1alpha2.NginxOperatorSpec) int {
	if declared := defaults.Nginx(spec).WorkerProcesses; declared != nil {
		return int(*declared)
	}

	limit := ptr.Deref(spec.Resources, corev1.ResourceRequirements{}).Limits[corev1.ResourceCPU]
	processors := limit.AsApproximateFloat64()
	if processors <= 0 {
		return 0
	}

	// The subtraction keeps 3000m at 3 despite the approximation.
	return int(max(1, math.Ceil(min(processors, maxWorkers)-1e-6)))
}

// Connections returns the maximum number of connections of all workers of a Pod with a limit of
// OpenFiles, or 0 if it depends on the node.
func Connections(spec *v1alpha2.NginxOperatorSpec) int64 {
	return int64(workers(spec)) * min(int64(*defaults.Nginx(spec).WorkerConnections), OpenFiles(spec))
}
