package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The instance of instanceFile.
const (
	instanceFile = "config/samples/operator_v1alpha2_nginxoperator.yaml"
	instanceName = "greeter"
	instancePort = 8080
)

func (d *demo) pageSteps() []step {
	return []step{
		{"Install the operator", d.applyDefault},
		{"Create an NGINX instance", d.createInstance},
		{"Get its page", d.getPage},
	}
}

func (d *demo) applyDefault(ctx context.Context) error {
	if err := d.refuse(ctx, false); err != nil {
		return err
	}
	if err := d.createNamespace(ctx, operatorNamespace); err != nil {
		return err
	}
	older, err := d.runsOlderImage(ctx)
	if err != nil {
		return err
	}
	commands := []string{"apply --server-side -k " + d.file("config/default")}
	const deployment = "deployment/" + operatorName + " -n " + operatorNamespace
	if older {
		commands = append(commands, "rollout restart "+deployment)
	}
	for _, command := range append(commands, "rollout status --timeout=4m "+deployment) {
		if _, err := d.announce(ctx, command); err != nil {
			return err
		}
	}
	return nil
}

// runsOlderImage reports whether the operator runs an image that a later build replaced. All builds
// of a release have the same tag, so applying the Deployment again does not change it. bin/cluster
// removes a replaced image from the node.
func (d *demo) runsOlderImage(ctx context.Context) (bool, error) {
	if !d.local {
		return false, nil
	}
	running, err := d.get(ctx, "pods", "--namespace="+operatorNamespace, "--selector="+operatorLabels, "--output=name")
	if err != nil || running == "" {
		return false, err
	}
	image, err := d.run(ctx, "", "ctr", "images", "list", "--quiet", "name=="+d.operatorImage)
	return image == "", err
}

func (d *demo) createInstance(ctx context.Context) error {
	if err := d.createNamespace(ctx, instanceNamespace); err != nil {
		return err
	}
	return d.show(ctx, instanceNamespace,
		"apply -f "+d.file(instanceFile), "wait --for=condition=Ready --timeout=2m ngx/"+instanceName, "get ngx")
}

// getPage runs the command that next prints.
func (d *demo) getPage(ctx context.Context) error {
	fmt.Printf("    $ %s\n", d.fetch())
	return retry(ctx, func(ctx context.Context) error {
		page, err := d.run(ctx, "", "sh", "-c", d.fetch())
		if err == nil {
			fmt.Print(indent(page))
		}
		return err
	})
}

// retry repeats a request until it succeeds, because nodes need about a second to route a new
// Service.
func retry(ctx context.Context, request func(context.Context) error) error {
	for {
		err := request(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(250 * time.Millisecond):
		}
	}
}

// fetch returns the command that prints the page, where the cluster is reachable. The local cluster
// installs busybox. The machine may have no other client.
func (d *demo) fetch() string {
	if d.local {
		return fmt.Sprintf("busybox wget -qO- http://%s.%s.svc:%d", instanceName, instanceNamespace, instancePort)
	}
	return fmt.Sprintf("kubectl get --raw /api/v1/namespaces/%s/services/%s:%d/proxy/", instanceNamespace, instanceName, instancePort)
}

// next returns what the demo prints at the end. hack/first-command runs the indented commands.
func (d *demo) next() string {
	again, shell := d.fetch(), ""
	stop := "To remove the demo, delete namespace " + instanceNamespace + ", and run `make undeploy CLUSTER=external`."
	if d.local {
		again = "make cluster-exec CMD='" + again + "'"
		shell = " For a shell that reaches the cluster, run `make cluster-exec CMD=bash`."
		stop = "To stop the cluster, run `make cluster-down`. bin/ keeps the programs, so `make demo` then takes half a minute."
	}
	return strings.NewReplacer("AGAIN", again, "SHELL", shell, "STOP", stop, "FILE", d.file(instanceFile),
		"NAMESPACE", instanceNamespace, "INSTANCE", instanceName).Replace(`
To get the page again:

    AGAIN

Three things to try next.SHELL

  1. See the instance, and the objects that the operator created for it:

    kubectl -n NAMESPACE get ngx,deployments,pods,services

  2. Set an image that does not exist. The operator rolls the change back, and the page stays:

    kubectl -n NAMESPACE patch ngx INSTANCE --type=merge -p 'spec: {image: no-such-image:v1}'
    kubectl -n NAMESPACE wait ngx INSTANCE --for=condition=Degraded --timeout=2m
    kubectl -n NAMESPACE get ngx INSTANCE -o jsonpath='{.status.conditions[?(@.type=="Degraded")].message}{"\n"}'

  3. Change the page in FILE, and apply it:

    kubectl -n NAMESPACE apply -f FILE

STOP
`)
}
