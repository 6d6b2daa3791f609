package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/example/nginx-operator/test/harness/repeat"
)

// The instance and the Secret of config/samples/tls-redirect.yaml.
const (
	secureInstance = "tls-redirect"
	secureSecret   = "tls-redirect-certificate"
	secureFile     = "config/samples/tls-redirect.yaml"
	secureObject   = "nginxoperator/" + secureInstance
	olderObject    = "nginxoperators.v1alpha1.operator.example.com/" + secureInstance
	leastRequests  = 20 // minimum number of requests for a meaningful result
)

func (d *demo) olmSteps() []step {
	return []step{
		{"Install the operator through a Subscription", d.subscribe},
		{"Create an NGINX instance", d.createInstance},
		{"Get its page", d.getPage},
		{"Create an instance with TLS, and get its page", d.createSecure},
		{"Make a change that fails and is rolled back, then a change at v1alpha1", d.changeSecure},
	}
}

// subscribe creates the CatalogSource and the Subscription, and waits until OLM reports that this
// release is installed.
func (d *demo) subscribe(ctx context.Context) error {
	if err := d.refuse(ctx, true); err != nil {
		return err
	}
	if err := d.createNamespace(ctx, operatorNamespace); err != nil {
		return err
	}
	manifests := ""
	for _, file := range []string{"catalog.yaml", "subscription.yaml"} {
		manifest, err := os.ReadFile(filepath.Join(d.root, "test", "harness", file))
		if err != nil {
			return fmt.Errorf("failed to read the manifests: %w", err)
		}
		manifests += string(manifest)
	}
	manifests = strings.NewReplacer("NAMESPACE", operatorNamespace, "CATALOG_IMAGE", d.catalogImage).Replace(manifests)
	if _, err := d.kubectl(ctx, manifests, "apply", "--filename=-"); err != nil {
		return err
	}
	csv := "csv/nginx-operator.v" + d.version
	return d.show(ctx, operatorNamespace,
		"get subscriptions.operators.coreos.com",
		"wait --for=create --timeout=4m "+csv,
		"wait --for=jsonpath={.status.phase}=Succeeded --timeout=4m "+csv)
}

// createSecure creates an instance with TLS. It creates a self-signed certificate unless an earlier
// run created it.
func (d *demo) createSecure(ctx context.Context) error {
	found, err := d.get(ctx, "secret", secureSecret, "-n", instanceNamespace, "--output=name")
	if err == nil && found == "" {
		certificate, key, failed := cert.GenerateSelfSignedCertKey(secureInstance+"."+instanceNamespace+".svc", nil, nil)
		if failed != nil {
			return fmt.Errorf("failed to create a certificate: %w", failed)
		}
		_, err = d.kubectl(ctx, fmt.Sprintf("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: %s}, "+
			"stringData: {tls.crt: %q, tls.key: %q}}", secureSecret, instanceNamespace, certificate, key), "create", "--filename=-")
	}
	if err != nil {
		return err
	}
	err = d.show(ctx, instanceNamespace, "apply -f "+d.file(secureFile), "wait --for=condition=Ready --timeout=2m "+secureObject)
	if err != nil {
		return err
	}
	return retry(ctx, func(ctx context.Context) error {
		page, err := d.requestSecure(ctx)
		if err == nil {
			fmt.Printf("    GET %s\n%s", secureURL, indent(page))
		}
		return err
	})
}

var secureClient = &http.Client{
	Timeout: 10 * time.Second,
	// #nosec G402 -- the certificate is self-signed
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

const secureURL = "https://" + secureInstance + "." + instanceNamespace + ".svc/"

// requestSecure returns the page of the instance with TLS. A status other than 200 is an error.
func (d *demo) requestSecure(ctx context.Context) (string, error) {
	if !d.local {
		return d.kubectl(ctx, "", "get", "--raw", "/api/v1/namespaces/"+instanceNamespace+"/services/https:"+secureInstance+":443/proxy/")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, secureURL, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := secureClient.Do(request)
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

// changeSecure sets an image that does not exist: the operator rolls the change back, and no
// request fails. Then it changes the instance at v1alpha1: fields that v1alpha1 does not have keep
// their values.
func (d *demo) changeSecure(ctx context.Context) error {
	requests := repeat.Start(context.WithoutCancel(ctx), 100*time.Millisecond, func(ctx context.Context, _ int) error {
		_, err := d.requestSecure(ctx)
		return err
	})
	defer requests.Stop()
	err := d.show(ctx, instanceNamespace,
		`patch `+secureObject+` --type=merge --patch={"spec":{"image":"ghcr.io/example/no-such-image:v0"}}`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Degraded")].reason}=RolledBack --timeout=2m`,
		`get `+secureObject+` --output=jsonpath={.status.conditions[?(@.type=="Degraded")].message}`,
		`patch `+secureObject+` --type=merge --patch={"spec":{"image":null}}`,
		`wait `+secureObject+` --for=condition=Ready --timeout=2m`,
		`get `+olderObject+` --output=jsonpath={.apiVersion}:{.spec}`,
		`patch `+olderObject+` --type=merge --patch={"spec":{"forceRedeploy":"`+time.Now().Format(time.RFC3339)+`"}}`,
		`get `+secureObject+` --output=jsonpath={.apiVersion}:{.spec.forceRedeploy},{.spec.tls}`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=RolloutInProgress --timeout=1m`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Progressing")].status}=False --timeout=2m`)
	return errors.Join(err, sumUp(requests.Stop()))
}

// sumUp prints the counts of the requests. Failed requests and too few requests are errors.
func sumUp(counts repeat.Counts) error {
	fmt.Printf("    requests during the rollback and the redeploy: %d, %d failed, the slowest took %.1f s\n",
		counts.Total, counts.Failed, counts.Slowest.Seconds())
	if counts.Failed > 0 {
		return fmt.Errorf("%d of %d requests failed, the first after %.1f s: %w",
			counts.Failed, counts.Total, counts.FirstAfter.Seconds(), counts.First)
	}
	if counts.Total < leastRequests {
		return fmt.Errorf("only %d requests were sent, which shows nothing", counts.Total)
	}
	return nil
}
