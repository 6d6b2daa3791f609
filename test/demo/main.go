// Command demo installs the operator through OLM and shows its features. `make demo` and `make
// demo-upgrade` build the images and run the command on a host that can reach the cluster.
//
//	demo           install this release; serve a page, a page over TLS, and a change that fails
//	               and is rolled back
//	demo upgrade   install the first release and let OLM upgrade it to this one, with clients
//	               that count failed requests
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/example/nginx-operator/test/harness"
)

const (
	operatorNamespace = "nginx-operator-system"
	instanceNamespace = "nginx-demo"
	crdName           = "nginxoperators.operator.example.com"
	csvPrefix         = "nginx-operator.v"
	pollInterval      = 250 * time.Millisecond
)

// demo is the shared state of the steps. The Makefile sets the environment variables that newDemo
// reads.
type demo struct {
	delivery, version, catalogImage, firstVersion, firstCatalogImage string
	// local reports whether the cluster is the one of test/cluster, whose Services this process can
	// reach.
	local  bool
	config *rest.Config
	client *http.Client
	// kubectl runs kubectl with a standard input and returns its output. Tests replace it.
	kubectl func(ctx context.Context, stdin string, args ...string) (string, error)
}

// step is one step of the demo with its time limit.
type step struct {
	name  string
	limit time.Duration
	run   func(context.Context) error
}

func main() {
	if err := run(context.Background(), strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command string) error {
	d, err := newDemo()
	if err != nil {
		return err
	}
	steps, known := map[string][]step{"": d.steps(), "upgrade": (&upgrade{demo: d}).steps()}[command]
	if !known {
		return fmt.Errorf("unknown command %q: run `make demo` or `make demo-upgrade`", command)
	}
	for _, step := range steps {
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	fmt.Println("Done. The operator and the instances are still running. Next: make cluster-exec CMD='kubectl explain nginxoperator.spec'")
	return nil
}

func newDemo() (*demo, error) {
	d := &demo{local: os.Getenv("CLUSTER") == "local", kubectl: kubectl}
	for name, field := range map[string]*string{
		"DELIVERY": &d.delivery, "VERSION": &d.version, "CATALOG_IMAGE": &d.catalogImage,
		"FIRST_VERSION": &d.firstVersion, "FIRST_CATALOG_IMAGE": &d.firstCatalogImage,
	} {
		if *field = os.Getenv(name); *field == "" {
			return nil, fmt.Errorf("%s is not set: run `make demo` or `make demo-upgrade`", name)
		}
	}
	var err error
	if d.config, err = ctrl.GetConfig(); err != nil {
		return nil, fmt.Errorf("failed to find the cluster: %w", err)
	}
	if !d.local {
		d.client, err = rest.HTTPClientFor(d.config)
		return d, err
	}
	// #nosec G402 -- the demo's certificate is self-signed
	d.client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	return d, nil
}

// do runs a step and prints how long it took.
func (s step) do(ctx context.Context) error {
	fmt.Printf("==> %s\n", s.name)
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("step %q failed after %.1f s: %w\nFor more, run: make cluster-exec CMD='%s'", s.name,
			time.Since(began).Seconds(), err, "kubectl get csv,nginxoperators,pods,events --all-namespaces")
	}
	fmt.Printf("    done in %.1f s\n", time.Since(began).Seconds())
	return nil
}

// kubectl runs kubectl. The error contains kubectl's stderr.
func kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.WaitDelay = 5 * time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("failed to run kubectl %s: %w\n%s", strings.Join(args, " "), errors.Join(err, ctx.Err()), errOut.String())
	}
	return string(out), err
}

// get runs kubectl get for an object that may not exist.
func (d *demo) get(ctx context.Context, args ...string) (string, error) {
	return d.kubectl(ctx, "", append([]string{"get", "--ignore-not-found"}, args...)...)
}

// show runs kubectl commands in a namespace and prints each with its output. Arguments must not
// contain blanks.
func (d *demo) show(ctx context.Context, namespace string, commands ...string) error {
	for _, command := range commands {
		out, err := d.kubectl(ctx, "", append(strings.Fields(command), "--namespace="+namespace)...)
		if err != nil {
			return err
		}
		fmt.Printf("    $ kubectl -n %s %s\n%s", namespace, command, indent(out))
	}
	return nil
}

// createNamespace creates a namespace. It does not change an existing namespace, which may belong
// to a user. The end-to-end tests delete namespaces with this label.
func (d *demo) createNamespace(ctx context.Context, name string) error {
	_, err := d.kubectl(ctx, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: "+
		"{operator.example.com/made-by: demo, pod-security.kubernetes.io/enforce: restricted}}}", name), "create", "--filename=-")
	if err != nil && strings.Contains(err.Error(), "AlreadyExists") {
		err = nil
	}
	return err
}

// install creates the CatalogSource and the Subscription of a release, and waits until OLM reports
// that the release is installed.
func (d *demo) install(ctx context.Context, version, catalogImage string) error {
	if err := d.refuseOtherOperators(ctx); err != nil {
		return err
	}
	if err := d.createNamespace(ctx, operatorNamespace); err != nil {
		return err
	}
	manifest := strings.NewReplacer("NAMESPACE", operatorNamespace, "CATALOG_IMAGE", catalogImage).
		Replace(harness.CatalogManifest + "---" + harness.SubscriptionManifest)
	if _, err := d.kubectl(ctx, manifest, "apply", "--filename=-"); err != nil {
		return err
	}
	return harness.Eventually(ctx, pollInterval, func(ctx context.Context) error {
		phase, err := d.get(ctx, "csv", csvPrefix+version, "-n", operatorNamespace, "--output=jsonpath={.status.phase}")
		if err == nil && phase != "Succeeded" {
			err = fmt.Errorf("ClusterServiceVersion %s is in phase %q", csvPrefix+version, phase)
		}
		return err
	})
}

// refuseOtherOperators returns an error if the operator is installed in another way: a cluster can
// have only one operator.
func (d *demo) refuseOtherOperators(ctx context.Context) error {
	found, err := d.get(ctx, "subscriptions.operators.coreos.com", "--all-namespaces",
		`--output=jsonpath={range .items[?(@.spec.name=="nginx-operator")]}{.metadata.namespace}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if namespaces := strings.Fields(found); len(namespaces) == 1 && namespaces[0] == operatorNamespace {
		return nil
	} else if len(namespaces) > 0 {
		return fmt.Errorf("the operator has Subscriptions in the namespaces %s: delete them and their ClusterServiceVersions first", namespaces)
	}
	found, err = d.get(ctx, "deployment", "nginx-operator-controller-manager", "-n", operatorNamespace, "--output=name")
	if err == nil && found != "" {
		err = errors.New("the operator is deployed without OLM: remove it first, with `make undeploy` if `make deploy` created it")
	}
	return err
}

// url returns the URL at which this process reaches the port of a Service. On a user's own cluster,
// it uses the API server's proxy.
func (d *demo) url(scheme, namespace, name string, port int) string {
	if d.local {
		return fmt.Sprintf("%s://%s.%s.svc.cluster.local:%d/", scheme, name, namespace, port)
	}
	host := strings.TrimSuffix(d.config.Host, "/")
	return fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s:%s:%d/proxy/", host, namespace, scheme, name, port)
}

// request returns the first 500 bytes of the page at a URL. A status other than 200 is an error.
func (d *demo) request(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := d.client.Do(request) // #nosec G704 -- a Service of the demo
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 500))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("the answer is %s: %.100q", response.Status, body)
	}
	return string(body), err
}

// showRequest prints the page at a URL. It retries, because nodes need about a second to route a
// new Service.
func (d *demo) showRequest(ctx context.Context, url string) error {
	return harness.Eventually(ctx, pollInterval, func(ctx context.Context) error {
		page, err := d.request(ctx, url)
		if err == nil {
			fmt.Printf("    GET %s\n%s", url, indent(page))
		}
		return err
	})
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
