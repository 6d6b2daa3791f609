package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Names of what examples/config installs.
const (
	operatorName    = "nginx-operator-examples"
	webhookService  = operatorName + "-webhook-service"
	webhookSecret   = operatorName + "-webhook-server-cert" // #nosec G101 -- the name of a Secret
	mutatingName    = operatorName + "-mutating-webhook-configuration"
	validatingName  = operatorName + "-validating-webhook-configuration"
	leaderElection  = operatorName + ".operator.example.com"
	systemNamespace = operatorName + "-system"
)

// options are the settings of the manager.
type options struct {
	// leaderElect makes replicas elect the one that reconciles; leaderElectionNamespace holds the Lease.
	leaderElect             bool
	leaderElectionNamespace string
	// metricsBindAddress is host:port of the HTTPS metrics endpoint, "0" for none.
	metricsBindAddress string
	// healthProbeBindAddress is host:port of /healthz and /readyz.
	healthProbeBindAddress string
	// namespace is that in which the manager runs, and in which the webhooks' Service and certificate are.
	namespace string
	// webhookHost and webhookPort are where the webhooks answer.
	webhookHost string
	webhookPort int
	// webhookURL takes the place of the Service, for a manager that runs outside of the cluster: https://host:port.
	webhookURL string
}

// errHelp is what parse returns when it printed the help.
var errHelp = pflag.ErrHelp

// parse reads the arguments (without the program's name); lookupEnv is os.LookupEnv, of which POD_NAMESPACE is used. Help
// goes to the writer. An error names the flag that is wrong.
func parse(args []string, lookupEnv func(string) (string, bool), help io.Writer) (*options, error) {
	namespace := systemNamespace
	if own, found := lookupEnv("POD_NAMESPACE"); found && own != "" {
		namespace = own
	}
	o := &options{}
	flags := pflag.NewFlagSet(operatorName, pflag.ContinueOnError)
	flags.SortFlags = false
	webhook := flags.String("webhook-bind-address", ":9443", "address of the HTTPS endpoint for admission")
	flags.BoolVar(&o.leaderElect, "leader-elect", false, "elect one of several replicas to reconcile; needed with more than one")
	flags.StringVar(&o.leaderElectionNamespace, "leader-election-namespace", "", "namespace of the election's Lease (default: the namespace the manager runs in)")
	flags.StringVar(&o.metricsBindAddress, "metrics-bind-address", ":8443", `address of the HTTPS metrics endpoint, "0" for none; callers need the right to get /metrics`)
	flags.StringVar(&o.healthProbeBindAddress, "health-probe-bind-address", ":8081", "address of /healthz and /readyz")
	flags.StringVar(&o.namespace, "operator-namespace", namespace, "namespace that the manager runs in, and its webhooks' Service and certificate are in")
	flags.StringVar(&o.webhookURL, "webhook-url", "", "https://host:port under which the API server reaches the webhooks, for a manager outside of the cluster")
	flags.SetOutput(io.Discard)
	flags.Usage = func() {
		_, _ = fmt.Fprintf(help, "The examples of nginx-operator: Foo, Activity, MyApp and SidecarSet.\n\nFlags:\n%s", flags.FlagUsagesWrapped(120))
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: the manager takes flags only, see --help", flags.Arg(0))
	}
	o.webhookURL = strings.TrimSuffix(o.webhookURL, "/")
	if parsed, err := url.Parse(o.webhookURL); err != nil || o.webhookURL != "" && (parsed.Scheme != "https" || parsed.Host == "" || parsed.Path+parsed.RawQuery+parsed.Fragment != "") {
		return nil, fmt.Errorf("--webhook-url is %q, must be https://host:port", o.webhookURL)
	}
	var err error
	if o.webhookHost, o.webhookPort, err = splitAddress(*webhook); err != nil {
		return nil, fmt.Errorf("--webhook-bind-address is %q, must be host:port or :port", *webhook)
	}
	return o, nil
}

// splitAddress returns host and port of an address.
func splitAddress(address string) (string, int, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return "", 0, err
	}
	if port < 1 || port > 65535 {
		return "", 0, errors.New("no such port")
	}
	return host, port, nil
}
