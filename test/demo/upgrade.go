package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/test/harness"
)

const (
	fleetNamespace = "nginx-upgrade"
	// fleetInstance has Pods. The other instances, whose number is bystanders, exist only to be
	// migrated.
	fleetInstance = "web"
	fleetPort     = 8080
	bystanders    = 20
	olderObjects  = "nginxoperators.v1alpha1.operator.example.com"
	isReady       = "wait --for=condition=Ready --timeout=2m " + olderObjects + "/" + fleetInstance
	lookInterval  = 5 * time.Second
	leastAnswers  = 20 // minimum number of requests for a meaningful result
)

// upgrade is the demo with the clients that run during all steps of the upgrade.
type upgrade struct {
	*demo
	page, reads *counter
}

// counter is a client that repeats a request and counts the results.
type counter struct {
	*harness.Repeated
	name string
}

// startCounter starts a client. The client continues after the step and the end of ctx, until Stop
// is called.
func startCounter(ctx context.Context, name string, ask func(context.Context, int) error) *counter {
	return &counter{harness.Repeat(context.WithoutCancel(ctx), 100*time.Millisecond, ask), name}
}

// finish stops the client and prints its counts. Failed requests and too few requests are errors.
func (c *counter) finish() error {
	c.Stop()
	counts := c.Counts()
	fmt.Printf("    %s: %d, %d failed, the slowest took %.1f s\n", c.name, counts.Total, counts.Failed, counts.Slowest.Seconds())
	if counts.Failed > 0 {
		return fmt.Errorf("%s: %d of %d failed, the first after %.1f s: %w",
			c.name, counts.Failed, counts.Total, counts.FirstAfter.Seconds(), counts.First)
	}
	if counts.Total < leastAnswers {
		return fmt.Errorf("%s: only %d, which shows nothing", c.name, counts.Total)
	}
	return nil
}

func (u *upgrade) steps() []step {
	return []step{
		{"Require a cluster that never had the operator", time.Minute, u.refuseUsedCluster},
		{"Install release " + u.firstVersion + " from its catalog", 5 * time.Minute, func(ctx context.Context) error {
			return u.install(ctx, u.firstVersion, u.firstCatalogImage)
		}},
		{"Create instances at v1alpha1, and clients that run until the end", 3 * time.Minute, u.createFleet},
		{"Point the CatalogSource to release " + u.version + ": OLM upgrades step by step", 8 * time.Minute, u.follow},
		{"Count what the upgrade did to instances and clients", 3 * time.Minute, u.sumUp},
	}
}

// refuseUsedCluster returns an error if the CRD exists, because the operator cannot be downgraded
// to the first release.
func (u *upgrade) refuseUsedCluster(ctx context.Context) error {
	found, err := u.get(ctx, "crd", crdName, "--output=name")
	if err == nil && found != "" {
		err = errors.New("the cluster has had the operator: run `make cluster-down` first, or, on a cluster of your own, " +
			"uninstall the operator and delete CRD " + crdName + " with all instances")
	}
	return err
}

// fleet returns the manifest of the instances, and their ports by name. Each port is unique.
func fleet() (ports map[string]int32, manifest string) {
	ports = map[string]int32{fleetInstance: fleetPort}
	for i := range int32(bystanders) {
		ports[fmt.Sprint("object-", i)] = 10000 + i
	}
	for name, port := range ports {
		replicas := map[bool]int{true: 2}[name == fleetInstance]
		manifest += fmt.Sprintf("---\n{apiVersion: operator.example.com/v1alpha1, kind: NginxOperator, "+
			"metadata: {name: %s, namespace: %s}, spec: {port: %d, replicas: %d}}\n", name, fleetNamespace, port, replicas)
	}
	return ports, manifest
}

func (u *upgrade) createFleet(ctx context.Context) error {
	ports, manifest := fleet()
	if err := u.createNamespace(ctx, fleetNamespace); err != nil {
		return err
	}
	if _, err := u.kubectl(ctx, manifest, "apply", "--filename=-"); err != nil {
		return err
	}
	if err := u.show(ctx, fleetNamespace, isReady); err != nil {
		return err
	}
	url := u.url("http", fleetNamespace, fleetInstance, fleetPort)
	u.page = startCounter(ctx, "requests to the page", func(ctx context.Context, _ int) error {
		page, err := u.request(ctx, url)
		if err == nil && !strings.Contains(page, "Welcome to nginx!") {
			err = fmt.Errorf("the answer is another page: %.100q", page)
		}
		return err
	})
	u.reads = startCounter(ctx, "reads of all instances at v1alpha1", func(ctx context.Context, _ int) error {
		return u.read(ctx, ports)
	})
	return u.showRequest(ctx, url)
}

// read lists the instances at v1alpha1 without discovery, and requires each instance with its port.
func (u *upgrade) read(ctx context.Context, ports map[string]int32) error {
	raw, err := u.kubectl(ctx, "", "get", "--raw", "/apis/operator.example.com/v1alpha1/namespaces/"+fleetNamespace+"/nginxoperators")
	if err != nil {
		return err
	}
	list, got := v1alpha1.NginxOperatorList{}, map[string]int32{}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		return err
	}
	for _, object := range list.Items {
		got[object.Name] = ptr.Deref(object.Spec.Port, 0)
	}
	if !maps.Equal(got, ports) {
		return fmt.Errorf("the ports of the instances are %v, want %v", got, ports)
	}
	return nil
}

// follow changes only the image of the CatalogSource. It prints each change until this release is
// installed, every object is stored at v1alpha2, and the operator allows further upgrades.
func (u *upgrade) follow(ctx context.Context) error {
	patch := `patch catalogsource nginx-operator-e2e --type=merge --patch={"spec":{"image":"` + u.catalogImage + `"}}`
	if err := u.show(ctx, operatorNamespace, patch); err != nil {
		return err
	}
	last := ""
	return harness.Eventually(ctx, pollInterval, func(ctx context.Context) error {
		releases, err := u.get(ctx, "csv", "-n", operatorNamespace, `--output=jsonpath={range .items[*]}{.metadata.name}={.status.phase} {end}`)
		stored, storedErr := u.get(ctx, "crd", crdName, "--output=jsonpath={.status.storedVersions}")
		upgradeable, upgradeableErr := u.get(ctx, "operatorconditions.operators.coreos.com", csvPrefix+u.version, "-n", operatorNamespace,
			`--output=jsonpath={.spec.conditions[?(@.type=="Upgradeable")].status}`)
		// If a resolution coincided with the deletion of the previous release, OLM retries it only
		// at the next event or after 15 minutes. The annotation triggers an event.
		_, resolveErr := u.kubectl(ctx, "", "annotate", "--overwrite", "subscriptions.operators.coreos.com", "nginx-operator",
			"-n", operatorNamespace, "example.com/looked-at="+time.Now().Truncate(lookInterval).Format(time.RFC3339))
		if err := errors.Join(err, storedErr, upgradeableErr, resolveErr); err != nil {
			return err
		}
		now := fmt.Sprintf("%sstored=%s upgradeable=%s", releases, stored, upgradeable)
		if now != last {
			fmt.Printf("    %s  %s\n", time.Now().Format(time.TimeOnly), now)
			last = now
		}
		if !strings.Contains(now, csvPrefix+u.version+"=Succeeded ") || !strings.HasSuffix(now, `stored=["v1alpha2"] upgradeable=True`) {
			return errors.New(now)
		}
		return nil
	})
}

// sumUp waits until the Pods run this release's nginx image, then stops the clients and prints
// their counts.
func (u *upgrade) sumUp(ctx context.Context) error {
	image, err := u.get(ctx, "deployment", "nginx-operator-controller-manager", "-n", operatorNamespace,
		`--output=jsonpath={.spec.template.spec.containers[0].env[?(@.name=="RELATED_IMAGE_NGINX")].value}`)
	if err != nil {
		return err
	}
	err = harness.Eventually(ctx, pollInterval, func(ctx context.Context) error {
		images, err := u.get(ctx, "pods", "-n", fleetNamespace, "--output=jsonpath={range .items[*]}{.spec.containers[0].image} {end}")
		if want := strings.Repeat(image+" ", 2); err == nil && images != want {
			err = fmt.Errorf("the Pods run %q, want %q", images, want)
		}
		return err
	})
	if err == nil {
		err = u.show(ctx, fleetNamespace, isReady)
	}
	return errors.Join(err, u.page.finish(), u.reads.finish())
}
