package rollout

import (
	"context"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/internal/failure"
	"github.com/example/nginx-operator/internal/inputs"
	"github.com/example/nginx-operator/internal/operand"
	"github.com/example/nginx-operator/internal/ratchet"
	"github.com/example/nginx-operator/internal/record"
)

// Resolution is the result of resolving a spec and its references.
type Resolution struct {
	// Invalid are the reasons why the spec cannot be applied.
	Invalid []failure.Failure
	// Outdated are stored values of the spec that this release refuses in a new write.
	Outdated field.ErrorList
	// Certificates are the referenced certificates that nginx can use.
	Certificates []operand.Certificate
	// CertificatesHash is the hash of these certificates, with which Pods mount them, or "".
	CertificatesHash string
	// Resolved reports whether all references could be read.
	Resolved bool
}

// Mounted returns the resolution with the certificates that Pods mount (Decision.Secrets), which are
// those of the spec if the argument is nil.
func (r Resolution) Mounted(secrets *operand.Inputs) Resolution {
	if secrets != nil {
		r.Certificates, r.CertificatesHash = secrets.Certificates, secrets.CertificatesHash
	}
	return r
}

// Declare returns the declaration of the object, or nil if the object is blocked, and the
// resolution of its spec. It returns an error if an object cannot be read.
func (r Decider) Declare(ctx context.Context, object *v1alpha2.NginxOperator) (*record.Declaration, Resolution, error) {
	in, invalid, err := r.Inputs.Resolve(ctx, object)
	var stored field.ErrorList
	if err == nil && len(invalid) == 0 {
		invalid, stored, err = r.ratchet(ctx, object)
	}
	found := Resolution{
		Invalid: invalid, Outdated: stored, Certificates: in.Certificates, CertificatesHash: in.CertificatesHash, Resolved: err == nil,
	}
	if err != nil || len(invalid) > 0 {
		return nil, found, err
	}
	out, err := record.NewDeclaration(object, in, r.Inputs.ReadFiles(object, in))
	if err == nil && r.Records.API != nil {
		out, err = r.asFailed(ctx, out)
	}
	return out, found, err
}

// ratchet returns the refused values of a valid spec. Values that the last applied declaration
// lacks are blockers: they were written while admission was unavailable. The others stay in effect,
// and the status reports them.
func (r Decider) ratchet(
	ctx context.Context, object *v1alpha2.NginxOperator,
) (blockers []failure.Failure, stored field.ErrorList, err error) {
	now := r.Inputs.Refusals(object)
	if len(now) == 0 || r.Records.API == nil { // nothing is applied
		return nil, nil, nil
	}
	var before []ratchet.Refusal
	switch applied, err := r.Records.LastApplied(ctx, object); {
	case record.IsUnusable(err), err == nil && applied == nil:
	case err != nil:
		return nil, nil, err
	default:
		before = r.Inputs.Refusals(applied.Object)
	}
	added, stored := ratchet.Split(before, now)
	for _, problem := range added {
		blockers = append(blockers, failure.Failure{Reason: v1alpha2.ReasonInvalidConfiguration, Message: problem.Error()})
	}
	return blockers, stored, nil
}

// Unusable returns the missing and unusable objects that the Pods of the Deployment need while its Pod
// template is not that of the spec. Those that a spec references are found by its resolution.
func (r Decider) Unusable(
	ctx context.Context, object *v1alpha2.NginxOperator, applied State,
) ([]inputs.Unusable, error) {
	deployment := r.Live.Deployment()
	if deployment == nil || applied != StateBlocked && applied != StateRolledBack {
		return nil, nil
	}
	return r.Inputs.Unusable(ctx, object, &deployment.Spec.Template)
}

// withSecrets returns an earlier declaration with the current content of its Secrets, and its inputs
// with this content. So an instance whose spec is not applied still gets renewed certificates. If a
// Secret cannot be used, no Pod could start, so the declaration stays as it is.
func (r Decider) withSecrets(ctx context.Context, of *record.Declaration) (*record.Declaration, operand.Inputs, error) {
	in, blockers, err := r.Inputs.CurrentSecrets(ctx, of.Object, of.Inputs)
	if err != nil {
		return nil, in, err
	}
	if len(blockers) > 0 || in.CertificatesHash == of.Inputs.CertificatesHash && in.SecretsHash == of.Inputs.SecretsHash {
		return of, in, nil
	}
	out, err := record.NewDeclaration(of.Object, in, of.Files)
	return out, in, err
}
