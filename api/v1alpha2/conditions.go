package v1alpha2

// Condition types of a NginxOperator. Each carries the generation of the object that it speaks of
// (observedGeneration); a condition of an older generation says nothing about the current one.
const (
	// ConditionReady is True when all desired replicas serve the configuration that the current generation
	// declares, and none serves an older one.
	ConditionReady = "Ready"
	// ConditionProgressing is True while the operands are being brought to what the current generation declares.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True when something keeps the operands from the declared state and will not pass by
	// itself, or has not passed for a while. Its reason and message say what, and what to do.
	ConditionDegraded = "Degraded"
	// ConditionCertificatesValid is there where spec.tls names certificates that can be used. It is False when one of them has
	// expired, and before that when less than three tenths of its lifetime are left: what renews certificates does so at a third.
	// nginx serves an expired certificate all the same, so Ready does not follow it.
	ConditionCertificatesValid = "CertificatesValid"
)

// Reasons that conditions carry when nothing is wrong.
const (
	// ReasonAllReplicasReady (Ready=True): every desired replica serves the declared configuration.
	ReasonAllReplicasReady = "AllReplicasReady"
	// ReasonScaledToZero (Ready=True): replicas is 0, so there is nothing that could serve.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonRolloutInProgress (Ready=False, Progressing=True): new operands are being started or old ones drained.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonWaitingForFleet (Progressing=True): what runs serves what is declared, and will be rolled to what a new release of the
	// operator makes of it when its turn comes.
	ReasonWaitingForFleet = "WaitingForFleet"
	// ReasonReplicasUnavailable (Ready=False): the rollout had finished, and since then replicas stopped being ready.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonRolloutComplete (Progressing=False): the operands are what the object declares.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonPaused (Progressing=False, and Ready=False where a change waits): spec.paused keeps the operator from changing
	// the operands.
	ReasonPaused = "Paused"
	// ReasonAsExpected (Degraded=False): nothing is known to be wrong.
	ReasonAsExpected = "AsExpected"
)

// Reasons of the condition CertificatesValid.
const (
	// ReasonCertificatesValid (CertificatesValid=True): no certificate is near its end.
	ReasonCertificatesValid = "CertificatesValid"
	// ReasonCertificateExpiring (CertificatesValid=False): a certificate was not renewed, and expires soon.
	ReasonCertificateExpiring = "CertificateExpiring"
	// ReasonCertificateExpired (CertificatesValid=False): a certificate has expired; clients refuse it.
	ReasonCertificateExpired = "CertificateExpired"
)

// Reasons that name a failure. Degraded=True carries them, and so does Ready when it is False because of it; status.blockedBy lists each,
// and Paused.
const (
	// ReasonReferenceNotFound: a ConfigMap or Secret that the spec names, or the key in it, does not exist. Running Pods are unchanged.
	// Way out: create it, or name another.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonInvalidReference: a ConfigMap or Secret that the spec names cannot be used: a Secret of another type, or a
	// certificate that does not belong to its key. Running Pods are unchanged. Way out: put into it what the message asks for.
	ReasonInvalidReference = "InvalidReference"
	// ReasonInvalidConfiguration: the spec, or the nginx configuration that it or a ConfigMap gives, cannot be used. Running
	// Pods are unchanged. Way out: correct the field or the line that the message names.
	ReasonInvalidConfiguration = "InvalidConfiguration"
	// ReasonUnreadable: the object is stored with a value that its type does not have, so nothing of it is applied. Running Pods
	// are unchanged. Way out: correct the field with kubectl edit.
	ReasonUnreadable = "Unreadable"
	// ReasonRolledBack: the rollout of the declaration failed and was taken back. The last declaration that served runs. Way out:
	// change the object, or what it names.
	ReasonRolledBack = "RolledBack"
	// ReasonNameConflict: an object that the operator has to create exists already and belongs to somebody else.
	// It is left as it is. Way out: delete or rename it, or choose another name.
	ReasonNameConflict = "NameConflict"
	// ReasonQuotaExceeded: a ResourceQuota of the namespace leaves no room for a child object or a Pod. Way out: raise the quota, or
	// lower replicas or resources.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonForbidden: the API server or an admission policy refused a child object or a Pod, for example the
	// Pod Security level of the namespace, or somebody's webhook. Way out: do what the message asks for, or have the policy changed.
	ReasonForbidden = "Forbidden"
	// ReasonInvalidChild: the API server found a child object invalid. Way out: find who changed the child that the message names.
	ReasonInvalidChild = "InvalidChild"
	// ReasonNamespaceTerminating: the namespace is being deleted, so nothing can be created in it. Way out: use another namespace.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonAPIError: requests to the API server have failed for another reason for a while; they are retried with back-off. Way out:
	// see to the API server, or to the webhook that the message names.
	ReasonAPIError = "APIError"
	// ReasonImagePullFailed: the image of an operand cannot be pulled. Way out: correct the image, or add imagePullSecrets.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerConfigError: the kubelet cannot make the container, for example because the image runs as root. Way out: name
	// an image that has what operands need, or create what the message misses.
	ReasonContainerConfigError = "ContainerConfigError"
	// ReasonCrashLoop: nginx keeps crashing; the message has its exit code and the end of its log. Way out: correct the image, or
	// raise the limits where it is OOMKilled.
	ReasonCrashLoop = "CrashLoop"
	// ReasonUnschedulable: no node can take a Pod. Way out: make room, or loosen podTemplate or resources.
	ReasonUnschedulable = "Unschedulable"
	// ReasonProgressDeadlineExceeded: the rollout made no progress for its deadline, and no other reason is known. Way out: look at
	// the Events of the newest Pods.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonAPIMissing (Ready is not False because of it): the cluster does not serve an API that a field of the spec needs, so what the
	// field asks for does not exist. All else does, and Pods serve. Way out: install the API that the message names, or remove the field.
	ReasonAPIMissing = "APIMissing"
	// ReasonRouteNotAccepted (Ready is not False because of it): a Gateway does not take the HTTPRoute, or cannot resolve what it names.
	// Pods serve. Way out: correct spec.expose.httpRoute, or the Gateway that the message names.
	ReasonRouteNotAccepted = "RouteNotAccepted"
)
