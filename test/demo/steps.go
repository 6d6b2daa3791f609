package main

// This file holds the steps.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// operatorNamespace is the one that the bundle suggests; instanceNamespace is for the example.
	operatorNamespace = "nginx-operator-system"
	instanceNamespace = "nginx-demo"
	// instance and port are those of config/samples.
	instance = "instance"
	port     = 80
)

const (
	// firstAPI is the version that the first release has, finalAPI the only one in which objects are stored in the end.
	firstAPI = "v1alpha1"
	finalAPI = "v1alpha2"
	// oldInstances is the resource as a client asks for it that knows only the first version.
	oldInstances = "nginxoperators." + firstAPI + ".operator.example.com"
)

// csvPrefix begins the name of each release's ClusterServiceVersion; the version follows.
const csvPrefix = "nginx-operator.v"

// installManifest is what an administrator applies to install the operator from a catalog. CATALOG_IMAGE is filled in.
const installManifest = `
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: nginx-operator
  namespace: nginx-operator-system
spec: {}
---
apiVersion: operators.coreos.com/v1alpha1
kind: CatalogSource
metadata:
  name: nginx-operator
  namespace: nginx-operator-system
spec:
  sourceType: grpc
  image: CATALOG_IMAGE
  displayName: NGINX Operator
  grpcPodConfig:
    securityContextConfig: restricted
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: nginx-operator
  namespace: nginx-operator-system
spec:
  name: nginx-operator
  channel: alpha
  source: nginx-operator
  sourceNamespace: nginx-operator-system
  installPlanApproval: Automatic
`

// namespaceManifest has the label by which the end-to-end tests know what they may remove.
const namespaceManifest = `
apiVersion: v1
kind: Namespace
metadata:
  name: NAME
  labels:
    operator.example.com/made-by: demo
    pod-security.kubernetes.io/enforce: restricted
`

// demo is what the steps share; the Makefile sets it through the environment.
type demo struct {
	repo, version, delivery, catalogImage string
	local                                 bool
	// inside says that this process is in the cluster's network already.
	inside bool
}

// newDemo reads the environment. Target is what sets it.
func newDemo(target string) (*demo, error) {
	d := &demo{local: os.Getenv("CLUSTER") == "local"}
	return d, readEnv(target, map[string]*string{
		"REPO_ROOT": &d.repo, "VERSION": &d.version, "DELIVERY": &d.delivery, "CATALOG_IMAGE": &d.catalogImage,
	})
}

func readEnv(target string, fields map[string]*string) error {
	for name, field := range fields {
		if *field = os.Getenv(name); *field == "" {
			return fmt.Errorf("%s is not set: run `%s`", name, target)
		}
	}
	return nil
}

// buildSteps make the cluster and the images of some targets.
func (d *demo) buildSteps(what string, targets ...string) []step {
	build := "the output above"
	if d.local {
		build += ", and the logs that `bin/cluster logs` lists"
	}
	return []step{
		{"A cluster with OLM (the first time builds Kubernetes from source)", time.Hour, func(ctx context.Context) error {
			return d.make(ctx, "bin/kubectl", "cluster-olm")
		}, build},
		{what, 15 * time.Minute, func(ctx context.Context) error {
			return d.make(ctx, targets...)
		}, build},
	}
}

// installStep installs a release and waits for it.
func (d *demo) installStep(name, version, catalogImage string) step {
	return step{name, 5 * time.Minute, func(ctx context.Context) error {
		return d.install(ctx, version, catalogImage)
	}, d.line(lookAtOLM)}
}

// lookAtOLM shows how far OLM is.
const lookAtOLM = "kubectl get catalogsource,subscription,installplan,csv,pod -n " + operatorNamespace

func (d *demo) steps() []step {
	return append(d.buildSteps("The images of the operator, its bundle and its catalog", "images"), []step{
		d.installStep("The operator, through a Subscription to the catalog", d.version, d.catalogImage),
		{
			"Instances: config/samples", 3 * time.Minute, d.declare,
			d.line("kubectl get nginxoperators,pods,events -n " + instanceNamespace),
		},
		{"What there is", time.Minute, d.show, d.line("kubectl get all -n " + instanceNamespace)},
		{"A request to it, through its Service", time.Minute, d.request, d.line("kubectl get service,endpointslice -n " + instanceNamespace)},
		{
			"An instance with TLS and a configuration of its own, at v1alpha2", 3 * time.Minute, d.declareSecure,
			d.line("kubectl get nginxoperators,pods,events -n " + instanceNamespace),
		},
		{"A request to it, over TLS", time.Minute, d.requestSecure, d.line("kubectl get service,endpointslice -n " + instanceNamespace)},
		{
			"A change that fails, and takes itself back", 4 * time.Minute, d.takeBack,
			d.line("kubectl get nginxoperators,pods,events -n " + instanceNamespace),
		},
		{
			"The same instance, read and changed at v1alpha1", time.Minute, d.showAtV1alpha1,
			d.line("kubectl get " + oldInstances + " -n " + instanceNamespace + " -o yaml"),
		},
	}...)
}

// install applies what is needed and waits until OLM says that the operator is installed.
func (d *demo) install(ctx context.Context, version, catalogImage string) error {
	if err := d.notElsewhere(ctx); err != nil {
		return err
	}
	if err := d.createNamespace(ctx, operatorNamespace); err != nil {
		return err
	}
	if err := d.apply(ctx, strings.ReplaceAll(installManifest, "CATALOG_IMAGE", catalogImage)); err != nil {
		return err
	}
	csv, last := csvPrefix+version, ""
	for {
		phase, err := d.kubectl(ctx, "get", "csv", csv, "-n", operatorNamespace, "--ignore-not-found", "--output=jsonpath={.status.phase}")
		if err == nil && phase == "Succeeded" {
			return nil
		}
		if err == nil && phase != "" && phase != last {
			fmt.Printf("    %s: %s\n", csv, phase)
			last = phase
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is %q", csv, phase), err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// notElsewhere returns an error where the operator is on the cluster in another way: there it can be only once.
func (d *demo) notElsewhere(ctx context.Context) error {
	here, err := d.subscribedHere(ctx)
	if err != nil {
		return err
	}
	if here {
		return nil
	}
	found, err := d.kubectl(ctx, "get", "deployment", "nginx-operator-controller-manager", "-n", operatorNamespace,
		"--ignore-not-found", "--output=name")
	if err == nil && found != "" {
		err = errors.New("the operator is deployed already without OLM: remove it first, with `make undeploy` if `make deploy` made it")
	}
	return err
}

// subscribedHere reports whether there is a Subscription where the demo makes it. One that is elsewhere is an error.
func (d *demo) subscribedHere(ctx context.Context) (bool, error) {
	found, err := d.kubectl(ctx, "get", "subscriptions.operators.coreos.com", "--all-namespaces",
		`--output=jsonpath={range .items[?(@.spec.name=="nginx-operator")]}{.metadata.namespace}{"\n"}{end}`)
	if err != nil {
		return false, err
	}
	here := false
	for _, namespace := range strings.Fields(found) {
		if namespace != operatorNamespace {
			return false, fmt.Errorf("the operator is installed already, by a Subscription in namespace %s: "+
				"delete that and its CSV first", namespace)
		}
		here = true
	}
	return here, nil
}

// createNamespace leaves a namespace that is there as it is: it may be somebody's.
func (d *demo) createNamespace(ctx context.Context, name string) error {
	found, err := d.kubectl(ctx, "get", "namespace", name, "--ignore-not-found", "--output=name")
	if err != nil || found != "" {
		return err
	}
	return d.apply(ctx, strings.ReplaceAll(namespaceManifest, "NAME", name))
}

// declare applies the examples and waits until they are ready.
func (d *demo) declare(ctx context.Context) error {
	if err := d.createNamespace(ctx, instanceNamespace); err != nil {
		return err
	}
	if _, err := d.kubectl(ctx, "apply", "-n", instanceNamespace, "-k", filepath.Join(d.delivery, "config", "samples")); err != nil {
		return err
	}
	return d.waitForReady(ctx, instanceNamespace, "nginxoperator/"+instance, "nginxoperator/greeter")
}

func (d *demo) show(ctx context.Context) error {
	out, err := d.kubectl(ctx, "get", "nginxoperators", "-n", instanceNamespace)
	if err == nil {
		fmt.Printf("    $ kubectl get nginxoperators -n %s\n%s", instanceNamespace, indent(out))
	}
	return err
}

// request shows the answer of the instance. A cluster of the user's own has its network elsewhere: there the request goes
// through the API server's proxy.
func (d *demo) request(ctx context.Context) error {
	if !d.local {
		path := fmt.Sprintf("/api/v1/namespaces/%s/services/%s:%d/proxy/", instanceNamespace, instance, port)
		out, err := d.kubectl(ctx, "get", "--raw", path)
		if err == nil {
			fmt.Printf("    $ kubectl get --raw %s\n%s", path, indent(firstLines(out)))
		}
		return err
	}
	url := serviceURL(port)
	out, err := d.inCluster(ctx, "", filepath.Join(d.repo, "bin", "demo"), "get", url)
	if err == nil {
		fmt.Printf("    GET %s\n%s", url, indent(out))
	}
	return err
}

func serviceURL(port int) string {
	return fmt.Sprintf("http://%s.%s.svc.cluster.local:%d", instance, instanceNamespace, port)
}
