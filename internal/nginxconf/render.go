package nginxconf

import (
	"path"

	crossplane "github.com/nginxinc/nginx-go-crossplane"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/assets"
	"github.com/example/nginx-operator/internal/defaults"
)

// Where the files of an operand are.
const (
	// Directory holds the configuration; the Deployment's command names nginx.conf in it.
	Directory = "/etc/nginx-operator"
	// TLSDirectory has a folder for each certificate, named like its Secret.
	TLSDirectory = "/etc/nginx/tls"
	// ContentDirectory holds the static files.
	ContentDirectory = "/usr/share/nginx/html"
)

// Names of the files.
const (
	// MainFile is the operator's part.
	MainFile = "nginx.conf"
	// ServersFile is the user's part, which MainFile includes in its http context.
	ServersFile = "servers.conf"
)

// Files is the configuration of an operand: the text of each file in Directory by its name.
type Files map[string]string

// Render returns the configuration that a spec asks for. servers is what spec.config gives, wherever that comes from;
// where it is empty, a server of the operator's own listens on every port. The text is taken as it is: Check says
// whether nginx would accept it.
func Render(spec *v1alpha2.NginxOperatorSpec, servers string, ipv6 bool) (Files, error) {
	params := assets.NginxConfParams{
		HealthPort:            defaults.HealthPort(spec),
		IPv6:                  ipv6,
		WorkerShutdownSeconds: defaults.DrainOf(spec).WorkerShutdown,
	}
	if servers != "" {
		params.Include = path.Join(Directory, ServersFile)
		params.Given = scanWords(servers, crossplane.LexOptions{}).top
	}
	for _, port := range defaults.Ports(spec) {
		params.Ports = append(params.Ports, port.Port)
	}
	for _, tls := range defaults.TLS(spec) {
		if tls.Port != nil {
			certificate, key := CertificateFiles(tls.SecretName)
			params.TLS = append(params.TLS, assets.NginxTLS{Port: *tls.Port, Certificate: certificate, Key: key})
		}
	}
	main, err := assets.NginxConf(params)
	if err != nil {
		return nil, err
	}
	files := Files{MainFile: main}
	if servers != "" {
		files[ServersFile] = servers
	}
	return files, nil
}

// CertificateFiles returns where nginx finds the certificate and the key of a Secret.
func CertificateFiles(secretName string) (certificate, key string) {
	folder := path.Join(TLSDirectory, secretName)
	return path.Join(folder, "tls.crt"), path.Join(folder, "tls.key")
}
