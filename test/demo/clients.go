package main

// This file has the clients that go on while the operator is upgraded, and count every answer that fails or is wrong.

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/nginx-operator/test/harness"
)

const (
	// requestLimit bounds one request. It is above the second after which a lost TCP packet is sent again, and above the
	// one or two for which the API server lets reads wait while a CRD changes.
	requestLimit = 10 * time.Second
	// The pauses keep the clients from taking the processor away from what is shown.
	pagePause = 20 * time.Millisecond
	readPause = 100 * time.Millisecond
	// leastAnswers is the number below which no failure would say little.
	leastAnswers = 50
	// page is what nginx's own start page says.
	page = "Welcome to nginx!"
)

// ask is one request, with a look at its answer.
type ask = func(ctx context.Context, n int) error

// counter asks the same again and again, and counts.
type counter struct {
	*harness.Repeated
	name string
}

// startCounter begins to ask, each way on its own. It outlives the step that starts it: only Stop ends it.
func startCounter(ctx context.Context, name string, pause time.Duration, ways ...ask) *counter {
	return &counter{harness.Repeat(context.WithoutCancel(ctx), pause, ways...), name}
}

// short returns the counts for a cell of a table. A client that has not begun has none.
func (c *counter) short() string {
	if c == nil {
		return "-"
	}
	counts := c.Counts()
	return fmt.Sprintf("%d/%d", counts.Total, counts.Failed)
}

// String returns the counts in words.
func (c *counter) String() string {
	counts := c.Counts()
	return fmt.Sprintf("%s: %d, %d failed, the slowest took %s", c.name, counts.Total, counts.Failed, seconds(counts.Slowest))
}

// failure returns an error where an answer failed.
func (c *counter) failure() error {
	if c == nil {
		return nil
	}
	if counts := c.Counts(); counts.Failed > 0 {
		return fmt.Errorf("%s: %d of %d failed, the first after %s: %w",
			c.name, counts.Failed, counts.Total, seconds(counts.FirstAfter), counts.First)
	}
	return nil
}

// enough returns an error where too few answers came to show anything.
func (c *counter) enough() error {
	if total := c.Counts().Total; total < leastAnswers {
		return fmt.Errorf("%s: only %d, that shows nothing", c.name, total)
	}
	return nil
}

// connect makes the client for the API server.
func (u *upgrade) connect() error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return fmt.Errorf("failed to find the cluster: %w", err)
	}
	config.QPS = -1 // no limit that would hide what the API server does
	config.Timeout = requestLimit
	// Each read of a deprecated version has a warning; the demo shows it once, at its end.
	config.WarningHandler = rest.NoWarnings{}
	if u.api, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("failed to make a client: %w", err)
	}
	u.config = config
	return nil
}

// startClients starts those that can be answered by the first release, once the page is there.
func (u *upgrade) startClients(ctx context.Context) error {
	url, ways, err := u.pageRequests()
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, serviceDelay)
	defer cancel()
	for _, way := range ways {
		if err := harness.Eventually(limited, 200*time.Millisecond, func(ctx context.Context) error { return way(ctx, 0) }); err != nil {
			return fmt.Errorf("failed to get %s: %w", url, err)
		}
	}
	u.page = startCounter(ctx, "requests to the page", pagePause, ways...)
	u.older = u.startReader(ctx, firstAPI)
	fmt.Printf("    GET %s (%d at a time)\n", url, len(ways))
	fmt.Printf("    a list of all %d instances at v1alpha1\n", len(u.fleet))
	fmt.Println("    the same at v1alpha2, from the moment on at which OLM says that a release with it is installed")
	return nil
}

// startReader lists all instances in a version, and looks whether each is there with its port.
func (u *upgrade) startReader(ctx context.Context, version string) *counter {
	instances := u.api.Resource(instanceKind.WithVersion(version)).Namespace(fleetNamespace)
	return startCounter(ctx, "reads at "+version, readPause, func(ctx context.Context, _ int) error {
		list, err := instances.List(ctx, listAll)
		if err != nil {
			return err
		}
		return u.fleet.check(version, list.Items)
	})
}

// pageRequests are the ways to ask for the page of the instance that has Pods: on one connection, and with a new one each
// time. A cluster of the user's own has its network elsewhere: there the requests go through the API server's proxy.
func (u *upgrade) pageRequests() (url string, ways []ask, err error) {
	if u.local {
		url = fmt.Sprintf("http://%s.%s.svc.cluster.local:%d/", fleetInstance, fleetNamespace, fleetPort)
		for _, keepAlive := range []bool{true, false} {
			client := newClient(requestLimit, keepAlive)
			ways = append(ways, func(ctx context.Context, _ int) error { return checkPage(getOnce(ctx, client, url)) })
		}
		return url, ways, nil
	}
	client, err := rest.HTTPClientFor(u.config)
	if err != nil {
		return "", nil, fmt.Errorf("failed to make an HTTP client: %w", err)
	}
	url = fmt.Sprintf("%s/api/v1/namespaces/%s/services/%s:%d/proxy/",
		strings.TrimSuffix(u.config.Host, "/"), fleetNamespace, fleetInstance, fleetPort)
	return url, []ask{func(ctx context.Context, _ int) error { return checkPage(getOnce(ctx, client, url)) }}, nil
}

// checkPage returns an error where an answer is not nginx's start page.
func checkPage(response *answer, err error) error {
	if err == nil && !strings.Contains(response.text, page) {
		err = fmt.Errorf("the answer is another page: %.100q", response.text)
	}
	return err
}
