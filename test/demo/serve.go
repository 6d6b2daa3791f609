package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/util/cert"
)

// The instance and the Secret of config/samples/tls-redirect.yaml.
const (
	secureInstance = "tls-redirect"
	secureSecret   = "tls-redirect-certificate"
	secureObject   = "nginxoperator/" + secureInstance
)

func (d *demo) steps() []step {
	return []step{
		{"Install the operator through a Subscription", 5 * time.Minute, func(ctx context.Context) error {
			return d.install(ctx, d.version, d.catalogImage)
		}},
		{"Create the instances of config/samples", 3 * time.Minute, d.createSamples},
		{"Create the instance of config/samples/tls-redirect.yaml", 3 * time.Minute, d.createSecure},
		{"Make a change that fails and is rolled back, then a change at v1alpha1", 4 * time.Minute, d.changeSecure},
	}
}

func (d *demo) createSamples(ctx context.Context) error {
	if err := d.createNamespace(ctx, instanceNamespace); err != nil {
		return err
	}
	err := d.show(ctx, instanceNamespace, "apply -k "+d.delivery+"/config/samples",
		"wait nginxoperators --for=condition=Ready --timeout=2m instance greeter", "get nginxoperators")
	if err != nil {
		return err
	}
	return d.showRequest(ctx, d.url("http", instanceNamespace, "instance", 80))
}

// createSecure creates an instance with TLS. It creates a self-signed certificate unless an earlier
// run created it.
func (d *demo) createSecure(ctx context.Context) error {
	found, err := d.get(ctx, "secret", secureSecret, "-n", instanceNamespace, "--output=name")
	if err == nil && found == "" {
		certificate, key, failed := cert.GenerateSelfSignedCertKey(secureInstance+"."+instanceNamespace+".svc.cluster.local", nil, nil)
		if failed != nil {
			return fmt.Errorf("failed to create a certificate: %w", failed)
		}
		_, err = d.kubectl(ctx, fmt.Sprintf("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: %s, namespace: %s}, "+
			"stringData: {tls.crt: %q, tls.key: %q}}", secureSecret, instanceNamespace, certificate, key), "create", "--filename=-")
	}
	if err != nil {
		return err
	}
	err = d.show(ctx, instanceNamespace, "apply -f "+d.delivery+"/config/samples/tls-redirect.yaml",
		"wait --for=condition=Ready --timeout=2m "+secureObject)
	if err != nil {
		return err
	}
	return d.showRequest(ctx, d.url("https", instanceNamespace, secureInstance, 443))
}

// changeSecure sets an image that does not exist: the operator rolls the change back, and no
// request fails. Then it changes the instance at v1alpha1: fields that v1alpha1 does not have keep
// their values.
func (d *demo) changeSecure(ctx context.Context) error {
	url := d.url("https", instanceNamespace, secureInstance, 443)
	requests := startCounter(ctx, "requests during the rollback and the redeploy", func(ctx context.Context, _ int) error {
		_, err := d.request(ctx, url)
		return err
	})
	defer requests.Stop()
	err := d.show(ctx, instanceNamespace,
		`patch `+secureObject+` --type=merge --patch={"spec":{"image":"ghcr.io/example/no-such-image:v0"}}`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Degraded")].reason}=RolledBack --timeout=2m`,
		`get `+secureObject+` --output=jsonpath={.status.conditions[?(@.type=="Degraded")].message}`,
		`patch `+secureObject+` --type=merge --patch={"spec":{"image":null}}`,
		`wait `+secureObject+` --for=condition=Ready --timeout=2m`)
	if err != nil {
		return err
	}
	err = d.show(ctx, instanceNamespace,
		`get `+olderObjects+`/`+secureInstance+` --output=jsonpath={.apiVersion}:{.spec}`,
		`patch `+olderObjects+`/`+secureInstance+` --type=merge --patch={"spec":{"forceRedeploy":"`+time.Now().Format(time.RFC3339)+`"}}`,
		`get `+secureObject+` --output=jsonpath={.apiVersion}:{.spec.forceRedeploy},{.spec.tls}`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Progressing")].reason}=RolloutInProgress --timeout=1m`,
		`wait `+secureObject+` --for=jsonpath={.status.conditions[?(@.type=="Progressing")].status}=False --timeout=2m`)
	return errors.Join(err, requests.finish())
}
