package storagemigration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// nudgeInterval is the time between the first and the second nudge of the migrator. Without nudges,
// the migrator waits up to 17 minutes after a short outage. Each later interval is twice as long: a
// migration that ends after a nudge starts again, so one that takes longer than a constant interval
// would never end.
const nudgeInterval = 5 * time.Second

type nudges struct {
	// of is the UID of the StorageVersionMigration. pause is the time from its last nudge to next.
	of    types.UID
	next  time.Time
	pause time.Duration
}

// due reports whether a migration may be nudged now. Each migration starts with a nudge.
func (n *nudges) due(of types.UID, now time.Time) bool {
	if n.of != of {
		*n = nudges{of: of}
	}
	return !now.Before(n.next)
}

func (n *nudges) done(now time.Time) {
	n.pause = max(2*n.pause, nudgeInterval)
	n.next = now.Add(n.pause)
}

// nudgeAnnotation is on the StorageVersionMigration. A change makes the migrator reconcile at once.
const nudgeAnnotation = "operator.example.com/nudged-at"

// api returns the preferred served API of StorageVersionMigrations, or nil if none is usable.
func (r *Reconciler) api() (*schema.GroupVersionKind, error) {
	if r.Manifest == nil {
		return nil, nil
	}
	for _, api := range apis {
		resources, err := r.Discovery.ServerResourcesForGroupVersion(api.GroupVersion().String())
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("failed to discover the API of storage migrations: %w", err)
		}
		if err == nil && slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == api.Kind }) {
			return &api, nil
		}
	}
	return nil, nil
}

func (r *Reconciler) create(ctx context.Context, s *situation) error {
	object, err := forCRD(r.Manifest, *s.migrator, s.crd)
	if err != nil {
		return fmt.Errorf("failed to build the %s: %w", manifestKind, err)
	}

	// The previous leader may have created it already.
	if err := r.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("failed to create the %s: %w", manifestKind, err)
	}

	log.FromContext(ctx).Info("Created the StorageVersionMigration", "api", s.migrator.GroupVersion().String())
	return nil
}

func (r *Reconciler) nudge(ctx context.Context, m *migration) error {
	over := m.is(conditionSucceeded) || m.is(conditionFailed)
	now := time.Now()
	if !m.is(conditionRunning) || over || m.object.GroupVersionKind().Group == kubeMigratorGroup || !r.nudges.due(m.object.GetUID(), now) {
		return nil
	}

	// Only a change after the resource version that the migrator first records wakes it.
	since, _, _ := unstructured.NestedString(m.object.Object, "status", "resourceVersion")
	if since == "" && now.Sub(m.object.GetCreationTimestamp().Time) < nudgeInterval {
		return nil
	}

	r.nudges.done(now)
	if since != "" {
		r.wake(ctx)
	}

	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, nudgeAnnotation, now.UTC().Format(time.RFC3339))
	if err := r.Client.Patch(ctx, m.object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("failed to annotate the %s: %w", manifestKind, err)
	}

	return nil
}

// wake rewrites one object, because the migrator waits for a change that is newer than the
// migration, or up to a minute for a bookmark. So a failure here only costs time.
func (r *Reconciler) wake(ctx context.Context) {
	namespaces := r.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for range namespaces {
		rewriter := &rewriter{client: r.Client, kind: r.Target, namespace: namespaces[r.wokenIn%len(namespaces)]}
		page, err := rewriter.page(ctx, 1, r.woken)
		if r.woken = page.Continue; r.woken == "" {
			r.wokenIn++
		}
		if err == nil && len(page.Items) == 0 {
			continue
		}
		if err == nil {
			err = rewriter.one(ctx, &page.Items[0])
		}
		if err == nil {
			return
		}

		// The operator can lack the permission in one namespace.
		log.FromContext(ctx).V(1).Info("Failed to rewrite an object to wake the control plane", "error", err.Error())
	}
}

// remove deletes the StorageVersionMigration, unless it was recreated since it was read.
func (r *Reconciler) remove(ctx context.Context, s *situation) error {
	if s.migration == nil {
		return nil
	}

	uid := s.migration.object.GetUID()
	err := r.Client.Delete(ctx, s.migration.object, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("failed to delete the %s: %w", manifestKind, err)
	}
	return nil
}

// listen logs each new message of the migrator, which has the progress and the errors.
func (r *Reconciler) listen(ctx context.Context, m *migration) {
	if message := m.message(conditionRunning); message != r.heard {
		r.heard = message
		log.FromContext(ctx).Info("The control plane migrates the stored objects", "message", message)
	}
}

const manifestKind = "StorageVersionMigration"

// kubeMigratorGroup is of kube-storage-version-migrator, whose spec.resource also has the version.
const kubeMigratorGroup = "migration.k8s.io"

// apis are the APIs of StorageVersionMigrations by preference: of Kubernetes 1.37, of Kubernetes
// 1.35 and 1.36, and of kube-storage-version-migrator.
var apis = []schema.GroupVersionKind{
	{Group: "storagemigration.k8s.io", Version: "v1", Kind: manifestKind},
	{Group: "storagemigration.k8s.io", Version: "v1beta1", Kind: manifestKind},
	{Group: kubeMigratorGroup, Version: "v1alpha1", Kind: manifestKind},
}

// Load reads the StorageVersionMigration of a CRD. Errors name the file and a wrong field.
func Load(file, crd string) (*unstructured.Unstructured, error) {
	raw, err := os.ReadFile(file) // #nosec G304 -- a flag of the operator names it
	if err != nil {
		return nil, fmt.Errorf("failed to read the storage migration: %w", err)
	}

	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(raw, &object.Object); err != nil {
		return nil, fmt.Errorf("failed to read the storage migration in %s: %w", file, err)
	}

	resource, _, _ := unstructured.NestedStringMap(object.Object, "spec", "resource")
	for _, want := range []struct{ field, is, want string }{
		{"kind", object.GetKind(), manifestKind},
		{"metadata.name", object.GetName(), crd},
		{"spec.resource", resource["resource"] + "." + resource["group"], crd},
	} {
		if want.is != want.want {
			return nil, fmt.Errorf("the storage migration in %s has %s %q, it must be %q", file, want.field, want.is, want.want)
		}
	}

	return object, nil
}

// forCRD returns the manifest as an object of an API, owned by a CRD, for its current generation.
func forCRD(
	manifest *unstructured.Unstructured, api schema.GroupVersionKind, crd *apiextensionsv1.CustomResourceDefinition,
) (*unstructured.Unstructured, error) {
	object := manifest.DeepCopy()
	object.SetGroupVersionKind(api)
	object.SetAnnotations(map[string]string{generationAnnotation: generationOf(crd)})
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition", Name: crd.Name, UID: crd.UID,
	}})

	if api.Group != kubeMigratorGroup {
		return object, nil
	}
	return object, unstructured.SetNestedField(object.Object, storedVersion(crd), "spec", "resource", "version")
}
