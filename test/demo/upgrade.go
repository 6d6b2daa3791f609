package main

// This file walks the upgrade graph: the first release, instances, and then the newest catalog, while clients go on.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	// fleetNamespace is for the instances that live through the upgrade; fleetInstance is the one that has Pods.
	fleetNamespace = "nginx-upgrade"
	fleetInstance  = "web"
	fleetPort      = 8080
	// bystanders is the number of instances without Pods. They are there to be stored again.
	bystanders = 20
	// lookInterval is short against the steps of OLM, which take seconds; statusInterval is the longest time without a line.
	lookInterval   = 250 * time.Millisecond
	statusInterval = 2 * time.Second
	// afterwards is how long the clients go on when all is done: OLM then removes the release before.
	afterwards = 5 * time.Second
)

// upgrade is what the steps of the walk share.
type upgrade struct {
	*demo
	firstVersion, firstCatalogImage string
	fleet                           fleet
	config                          *rest.Config
	api                             dynamic.Interface
	// page, older and newer are the clients; newer begins with the first release that has v1alpha2.
	page, older, newer *counter
	// pods are the Pods at the start, each with its unique id.
	pods    []string
	journal journal
}

func newUpgrade() (*upgrade, error) {
	const target = "make demo-upgrade"
	d, err := newDemo(target)
	if err != nil {
		return nil, err
	}
	u := &upgrade{demo: d, fleet: newFleet()}
	err = readEnv(target, map[string]*string{"FIRST_VERSION": &u.firstVersion, "FIRST_CATALOG_IMAGE": &u.firstCatalogImage})
	if err == nil && u.firstVersion == u.version {
		err = fmt.Errorf("release %s is the first one, there is no upgrade to it", u.version)
	}
	u.journal = journal{first: u.firstVersion, last: u.version}
	return u, err
}

// prepareUpgrade makes what the walk needs, and goes on where the instances can be reached.
func prepareUpgrade(ctx context.Context) error {
	u, err := newUpgrade()
	if err != nil {
		return err
	}
	if err := doAll(ctx, u.buildSteps("The images of this release and of those before it", "images", "release-images")); err != nil {
		return err
	}
	if !u.local {
		return walk(ctx)
	}
	// This process becomes the one in the cluster's network: same terminal, same signals, and its exit code counts.
	cluster := filepath.Join(u.repo, "bin", "cluster")
	return fmt.Errorf("failed to run %s: %w", cluster,
		syscall.Exec(cluster, []string{cluster, "exec", "--", filepath.Join(u.repo, "bin", "demo"), "walk"}, os.Environ()))
}

// walk goes from the first release to this one.
func walk(ctx context.Context) error {
	u, err := newUpgrade()
	if err != nil {
		return err
	}
	u.inside = true
	if err := u.connect(); err != nil {
		return err
	}
	began := time.Now()
	if err := doAll(ctx, u.walkSteps()); err != nil {
		return err
	}
	fmt.Printf("\nThe walk took %s. The operator and the instances are still there. Try next:\n\n%s",
		seconds(time.Since(began)), u.upgradeHints())
	return nil
}

func (u *upgrade) walkSteps() []step {
	instances := u.line("kubectl get nginxoperators,pods,events -n " + fleetNamespace)
	return []step{
		{
			"What an earlier demo left", 3 * time.Minute, u.clean,
			u.line("kubectl get namespaces -l " + madeByDemo),
		},
		u.installStep("Release "+u.firstVersion+", through a Subscription to the catalog in which it is the newest",
			u.firstVersion, u.firstCatalogImage),
		{"Instances at v1alpha1, the only version that it has", 3 * time.Minute, u.declareFleet, instances},
		{"Clients that go on until the end", time.Minute, u.startClients, instances},
		{
			"The newest catalog: OLM walks to release " + u.version + " by itself", 6 * time.Minute, u.follow,
			u.line(lookAtOLM + "; kubectl get storageversionmigration " + crdName + " -o yaml"),
		},
		{"What the walk did to instances and clients", time.Minute, u.sumUp, instances},
	}
}

// declareFleet applies the instances and waits until the one with Pods is ready.
func (u *upgrade) declareFleet(ctx context.Context) error {
	if err := u.createNamespace(ctx, fleetNamespace); err != nil {
		return err
	}
	if err := u.apply(ctx, u.fleet.manifest()); err != nil {
		return err
	}
	if err := u.waitForReady(ctx, fleetNamespace, oldInstances+"/"+fleetInstance); err != nil {
		return err
	}
	var err error
	if u.pods, err = u.podsNow(ctx); err != nil {
		return err
	}
	fmt.Printf("    %s is ready, with %d Pods (name and unique id); %d more instances have no Pods\n%s",
		fleetInstance, len(u.pods), bystanders, indent(strings.Join(u.pods, "\n")))
	return nil
}

// podsNow returns name and unique id of each Pod of the instances.
func (u *upgrade) podsNow(ctx context.Context) ([]string, error) {
	out, err := u.kubectl(ctx, "get", "pods", "-n", fleetNamespace,
		`--output=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
	return strings.Split(strings.TrimSpace(out), "\n"), err
}

// follow changes the image of the catalog, and nothing else, and writes down what OLM and the operator make of it.
func (u *upgrade) follow(ctx context.Context) error {
	patch := fmt.Sprintf(`{"spec":{"image":%q}}`, u.catalogImage)
	if _, err := u.kubectl(ctx, "patch", "catalogsource", "nginx-operator", "-n", operatorNamespace,
		"--type=merge", "--patch="+patch); err != nil {
		return err
	}
	u.journal.began = time.Now()
	fmt.Printf("    the image of the CatalogSource was %s and is %s\n\n%s\n%s",
		u.firstCatalogImage, u.catalogImage, indent(legend()), header())
	var shown []string
	var printed time.Time
	for {
		now, cells, err := u.lookOnce(ctx)
		changed := err == nil && !slices.Equal(cells, shown)
		// The next look would be too late for the line that is due.
		if due := now.Add(lookInterval).Sub(printed) > statusInterval; changed || due {
			u.print(now, changed, cells, err)
			printed = now
		}
		if changed {
			shown = cells
		}
		if u.journal.doneFor(now) >= afterwards {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the last that was seen is: %s", strings.Join(shown, "; ")), err,
				u.page.failure(), u.older.failure(), u.newer.failure())
		case <-time.After(lookInterval):
		}
	}
}

// lookOnce looks, writes down what is reached, and starts the client for v1alpha2 once it can be answered.
func (u *upgrade) lookOnce(ctx context.Context) (time.Time, []string, error) {
	limited, cancel := context.WithTimeout(ctx, statusInterval)
	defer cancel()
	s, err := u.look(limited)
	now := time.Now()
	if err != nil {
		return now, nil, err
	}
	u.journal.note(s, now)
	if u.newer == nil && len(u.journal.arrivals) > 0 {
		u.newer = u.startReader(ctx, finalAPI)
	}
	return now, s.cells(), nil
}

func (u *upgrade) print(now time.Time, changed bool, cells []string, err error) {
	clock := now.Format(time.TimeOnly)
	if err != nil {
		fmt.Print(row(false, clock, "cannot be read: "+err.Error()))
		return
	}
	fmt.Print(row(changed, slices.Concat([]string{clock}, cells, []string{u.page.short(), u.older.short(), u.newer.short()})...))
}

// sumUp ends the clients and says what they saw. Whatever failed is an error.
func (u *upgrade) sumUp(ctx context.Context) error {
	fmt.Print(indent(u.journal.String()))
	var errs []error
	for _, client := range []*counter{u.page, u.older, u.newer} {
		client.Stop()
		fmt.Print(indent(client.String()))
		errs = append(errs, client.failure(), client.enough())
	}
	pods, err := u.podsNow(ctx)
	if err == nil && !slices.Equal(pods, u.pods) {
		err = fmt.Errorf("the Pods were\n%s\nand are\n%s", strings.Join(u.pods, "\n"), strings.Join(pods, "\n"))
	}
	if err == nil {
		fmt.Printf("    the Pods are those from before the walk:\n%s", indent(indent(strings.Join(pods, "\n"))))
	}
	stored, storedErr := u.kubectl(ctx, "get", "crd", crdName, "--output=jsonpath={.status.storedVersions}")
	if storedErr == nil {
		fmt.Printf("    objects are stored in the versions %s\n", stored)
	}
	return errors.Join(append(errs, err, storedErr, u.showDeprecation(ctx))...)
}

// showDeprecation shows what warning somebody gets who still uses the first version of the API.
func (u *upgrade) showDeprecation(ctx context.Context) error {
	answer, warning, err := u.outputs(ctx, "", "kubectl", "get", oldInstances, "-n", fleetNamespace, fleetInstance)
	if err != nil {
		return err
	}
	fmt.Printf("    $ kubectl get %s -n %s %s\n%s", oldInstances, fleetNamespace, fleetInstance, indent(warning+answer))
	if !strings.Contains(warning, "Warning:") {
		return errors.New("a read at v1alpha1 has no warning that this version is deprecated")
	}
	return nil
}

func (u *upgrade) upgradeHints() string {
	instance := "nginxoperators.%s.operator.example.com/" + fleetInstance + " -n " + fleetNamespace + " -o yaml"
	return u.list([]hint{
		{
			"Look at what the operator and the instances are now",
			"kubectl get csv,pods -n " + operatorNamespace + "; kubectl get nginxoperators -n " + fleetNamespace,
		},
		{"Read the same instance in both versions", fmt.Sprintf("kubectl get "+instance+"; kubectl get "+instance, firstAPI, finalAPI)},
		{"Look at how its objects were stored again", "kubectl get storageversionmigration " + crdName + " -o yaml"},
	}) + u.removal(fleetNamespace)
}
