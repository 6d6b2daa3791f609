package rollout

import (
	"context"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/defaults"
	"github.com/example/nginx-operator/internal/nginxconf"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/record"
	"github.com/example/nginx-operator/internal/wellknown"
)

// A change has two parts that reach Pods: the user's part (spec, configuration, content, and files),
// and the release's part (default images, nginx.conf, Pod template). Everything else of a spec is the
// entrance and the size of the instance.
//
// While the user's part of a spec is that of the good Pods, its entrance applies at once. Otherwise the
// entrance that is in effect stays until the new Pods have proven themselves.

// good is what the last good revision of an object says about a declaration.
type good struct {
	// declaration has the good Pods with the entrance that is in effect. It is nil if it is not known.
	declaration *record.Declaration
	// isSame means that the user's part of the declaration is that of the good Pods.
	isSame bool
}

// goodOf returns the good declaration of an object. declared is the declaration of its spec, or nil if
// it is blocked.
func (r Decider) goodOf(ctx context.Context, object *v1alpha2.NginxOperator, declared *record.Declaration) (good, error) {
	last := object.Status.LastGoodRevision
	switch {
	case last == nil:
		return good{}, nil
	case declared != nil && last.Revision == declared.Revision.Name:
		return good{declared, true}, nil
	}
	found, err := r.restore(ctx, object, last.Revision)
	if found == nil || declared == nil || err != nil {
		return good{declaration: found}, err
	}
	isSame, err := r.isSameUserPart(ctx, declared, found)
	if err != nil || !isSame {
		return good{declaration: found}, err
	}
	found, err = withEntranceOf(declared, found)
	return good{found, true}, err
}

// complete returns a decision with what the last good revision says. Nothing of a paused object is
// written, so all of its changes wait together.
func (r Decider) complete(object *v1alpha2.NginxOperator, d Decision, known good) Decision {
	d.Good = known.declaration
	d.Unproven = d.Apply != nil && d.Good != nil && !known.isSame && !object.Spec.Paused && d.Apply.Revision.Name != d.Good.Revision.Name
	if d.Unproven && !r.wroteEntrance(object, d.Apply) {
		d.Entrance = d.Good
	}
	return d
}

// wroteEntrance reports whether a release before 0.8.0 has written the entrance of a declaration
// together with its Pods. It stays in effect then.
func (r Decider) wroteEntrance(object *v1alpha2.NginxOperator, of *record.Declaration) bool {
	deployment := r.Live.Deployment()
	return deployment != nil && record.Name(object, deployment.Labels[wellknown.LabelRecord]) == of.Revision.Name &&
		!r.Live.EntranceFollows(of.Revision.Name)
}

// restore returns the declaration of a record, or nil if the record does not exist or cannot be used.
func (r Decider) restore(ctx context.Context, object *v1alpha2.NginxOperator, name string) (*record.Declaration, error) {
	records, err := r.Records.List(object)
	if err != nil {
		return nil, err
	}
	found := recordOf(records, name)
	if found == nil {
		return nil, nil
	}
	out, err := r.Records.Restore(ctx, object, found)
	if record.IsUnusable(err) {
		return nil, nil
	}
	return out, err
}

// withEntranceOf returns an earlier declaration whose user's part is that of a declared one, with the
// entrance of the latter.
func withEntranceOf(declared, earlier *record.Declaration) (*record.Declaration, error) {
	if sameSpec(declared, earlier) {
		return earlier, nil
	}
	return record.NewDeclaration(declared.Object, earlier.Inputs, earlier.Files)
}

// sameSpec reports whether two declarations have the same spec, apart from replicas. Specs of the same
// generation are the same, even if the schema of another release has set another default.
func sameSpec(declared, last *record.Declaration) bool {
	if declared.Object.Generation == last.Object.Generation {
		return true
	}
	now, before := declared.Object.Spec, last.Object.Spec
	now.Replicas, before.Replicas = nil, nil
	return defaults.SameSpec(&now, &before)
}

// isSameUserPart reports whether the Pods of two declarations differ at most by the release and by the
// content of Secrets. It renders the earlier one as this release does.
func (r Decider) isSameUserPart(ctx context.Context, declared, earlier *record.Declaration) (bool, error) {
	if hashOf(declared.Inputs.Content) != hashOf(earlier.Inputs.Content) || hashOf(declared.Inputs.Files) != hashOf(earlier.Inputs.Files) {
		return false, nil
	}
	if sameSpec(declared, earlier) {
		return sameServers(ctx, declared, earlier)
	}

	in := r.Inputs.Inputs(earlier.Object)
	in.Config, in.Content, in.Files = declared.Inputs.Config, earlier.Inputs.Content, earlier.Inputs.Files
	in.SecretsHash, in.CertificatesHash = declared.Inputs.SecretsHash, declared.Inputs.CertificatesHash
	again := &record.Declaration{Object: earlier.Object, Inputs: in}
	if !record.SamePods(declared, again) {
		return false, nil
	}
	if declared.Inputs.Config.Hash == earlier.Inputs.Config.Hash {
		return true, nil
	}
	files, err := earlier.Files(ctx)
	if record.IsUnusable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	config, err := r.Inputs.Configuration(earlier.Object, files.Config[nginxconf.ServersFile])
	return err == nil && config.Hash == declared.Inputs.Config.Hash, nil //nolint:nilerr // this release cannot render it
}

// asFailed returns a declaration under the name of a failed revision if its Pods are those of that
// revision: an edit of the entrance does not make them work.
func (r Decider) asFailed(ctx context.Context, declared *record.Declaration) (*record.Declaration, error) {
	status := &declared.Object.Status
	name, last := declared.Revision.Name, status.LastGoodRevision
	if record.HasFailed(status, name) || last != nil && last.Revision == name {
		return declared, nil
	}
	for i := range status.FailedRevisions {
		failed, err := r.restore(ctx, declared.Object, status.FailedRevisions[i].Revision)
		if err != nil {
			return nil, err
		}
		if failed != nil && record.SamePods(declared, failed) {
			out := *declared
			out.Revision = declared.Revision.DeepCopy()
			out.Revision.Name = failed.Revision.Name
			return &out, nil
		}
	}
	return declared, nil
}

// sameServers reports whether the user's part of two configurations is the same. An inline
// configuration is part of the spec.
func sameServers(ctx context.Context, declared, last *record.Declaration) (bool, error) {
	config := declared.Object.Spec.Config
	if declared.Inputs.Config.Hash == last.Inputs.Config.Hash || config == nil || config.ConfigMapRef == nil {
		return true, nil
	}
	before, err := last.Files(ctx)
	if record.IsUnusable(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now, err := declared.Files(ctx)
	return now.Config[nginxconf.ServersFile] == before.Config[nginxconf.ServersFile], err
}

// hashOf returns the hash of files, or "" for nil.
func hashOf(content *operand.Content) string {
	if content == nil {
		return ""
	}
	return content.Hash
}
