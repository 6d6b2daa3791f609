package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// HTTPRouteCRD is the name of the CustomResourceDefinition of HTTPRoutes.
const HTTPRouteCRD = "httproutes.gateway.networking.k8s.io"

// InstallHTTPRoutes creates the CustomResourceDefinition of HTTPRoutes, that of the module of which the operator has the types, and returns
// when they are served.
func InstallHTTPRoutes(ctx context.Context, admin client.Client) error {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	dir, err := list.Output()
	if err != nil {
		return fmt.Errorf("failed to find the module of the Gateway API: %w", err)
	}
	file := filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "standard", "gateway.networking.k8s.io_httproutes.yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("failed to read the Gateway API: %w", err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		return fmt.Errorf("failed to decode the Gateway API: %w", err)
	}
	if err := admin.Create(ctx, crd); err != nil {
		return fmt.Errorf("failed to install the Gateway API: %w", err)
	}
	return untilServed(ctx, admin, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd != nil && apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	})
}

// RemoveHTTPRoutes deletes the CustomResourceDefinition of HTTPRoutes, and with it all of them, and returns when it is gone.
func RemoveHTTPRoutes(ctx context.Context, admin client.Client) error {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = HTTPRouteCRD
	if err := admin.Delete(ctx, crd); err != nil {
		return fmt.Errorf("failed to remove the Gateway API: %w", err)
	}
	return untilServed(ctx, admin, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd == nil })
}

// untilServed waits until the CustomResourceDefinition, nil where there is none, is as it should be.
func untilServed(ctx context.Context, admin client.Client, is func(*apiextensionsv1.CustomResourceDefinition) bool) error {
	return Eventually(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		err := admin.Get(ctx, client.ObjectKey{Name: HTTPRouteCRD}, crd)
		if apierrors.IsNotFound(err) {
			crd = nil
		} else if err != nil {
			return err
		}
		if !is(crd) {
			return errors.New("the Gateway API is not as it should be yet")
		}
		return nil
	})
}
