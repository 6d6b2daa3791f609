package v1alpha2

// Condition types of an NginxOperator. observedGeneration of a condition is the generation that
// the condition describes. A condition of an older generation says nothing about the current
// one.
const (
	// ConditionReady is True if all desired replicas serve the current generation, and no Pod
	// serves an older one. The probes use a server of the operator, so it does not depend on the
	// answers of the user's servers.
	ConditionReady = "Ready"
	// ConditionProgressing is True while the operator rolls out the current generation.
	ConditionProgressing = "Progressing"
	// ConditionDegraded is True if a problem that persists keeps the running state from the spec.
	// Its reason and message have the problem and the remedy.
	ConditionDegraded = "Degraded"
	// ConditionCertificatesValid exists if spec.tls references at least one usable certificate.
	// It is False if a certificate has expired or has less than three tenths of its lifetime
	// left. Certificate managers renew when a third is left, so False before the expiry means
	// that the renewal failed. nginx serves expired certificates too, so this condition does not
	// affect Ready.
	ConditionCertificatesValid = "CertificatesValid"
	// ConditionOutdated exists, and is True, while the spec has values that an older release
	// accepted and this release rejects in a new write. The values stay in effect, so this
	// condition does not affect Ready.
	ConditionOutdated = "Outdated"
)

// Reasons of conditions when nothing is wrong.
const (
	// ReasonAllReplicasReady (Ready=True): all desired replicas serve the current spec. The
	// operator does not check the responses of nginx.
	ReasonAllReplicasReady = "AllReplicasReady"
	// ReasonScaledToZero (Ready=True): replicas is 0, so no Pod runs.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonRolloutInProgress (Ready=False, Progressing=True): new Pods are starting, or old
	// Pods are draining.
	ReasonRolloutInProgress = "RolloutInProgress"
	// ReasonWaitingForFleet (Progressing=True): the operator upgrade changes the Pod template,
	// and the instance waits for a rollout slot. The running Pods serve the current spec.
	ReasonWaitingForFleet = "WaitingForFleet"
	// ReasonReplicasUnavailable (Ready=False): the rollout completed, and later some Pods
	// stopped being ready.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonRolloutComplete (Progressing=False): all Pods have the current Pod template.
	ReasonRolloutComplete = "RolloutComplete"
	// ReasonPaused (Progressing=False, and Ready=False if a change is pending): spec.paused is
	// true, so the operator changes nothing.
	ReasonPaused = "Paused"
	// ReasonAsExpected (Degraded=False): no problem is known.
	ReasonAsExpected = "AsExpected"
)

// Reasons of the condition CertificatesValid.
const (
	// ReasonCertificatesValid (CertificatesValid=True): no certificate expires soon.
	ReasonCertificatesValid = "CertificatesValid"
	// ReasonCertificateExpiring (CertificatesValid=False): a certificate expires soon and was
	// not renewed.
	ReasonCertificateExpiring = "CertificateExpiring"
	// ReasonCertificateExpired (CertificatesValid=False): a certificate has expired. Clients
	// reject it.
	ReasonCertificateExpired = "CertificateExpired"
)

// Reasons of the condition Outdated.
const (
	// ReasonValueRefused (Outdated=True): a field has a value that an older release accepted and
	// this release rejects in a new write. The value stays in effect, and all other fields can
	// be changed. Remedy: change the field as the message says.
	ReasonValueRefused = "ValueRefused"
)

// Reasons of failures. An instance is blocked while status.blockedBy lists one of them, or Paused.
// The metric nginx_operator_blocked_objects counts the blocked instances by reason. Degraded=True
// has one of these reasons, and so has Ready=False if the failure is its cause. With
// ReferenceNotFound, InvalidReference, InvalidConfiguration, and Unreadable, the spec cannot be
// used.
const (
	// ReasonReferenceNotFound: a referenced ConfigMap or Secret, or its key, does not exist.
	// Running Pods are unchanged. Remedy: create it, or correct the reference.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonInvalidReference: a referenced ConfigMap or Secret cannot be used. For example, the
	// Secret has the wrong type, or the certificate does not match its key. Running Pods are
	// unchanged. Remedy: correct its content as the message says.
	ReasonInvalidReference = "InvalidReference"
	// ReasonInvalidConfiguration: the spec, or the nginx configuration in the spec or in a
	// ConfigMap, is invalid. Running Pods are unchanged. Remedy: correct the field or line in
	// the message.
	ReasonInvalidConfiguration = "InvalidConfiguration"
	// ReasonUnreadable: the stored object has a field with a value of the wrong type, so the
	// operator cannot apply the spec. Running Pods are unchanged. Remedy: correct the field with
	// kubectl edit.
	ReasonUnreadable = "Unreadable"
	// ReasonForgedContent: another client replaced a ConfigMap or ControllerRevision of the
	// operator with different content. The operator recreates the ConfigMap under a new name and
	// replaces all Pods, and it ignores a replaced ControllerRevision. Remedy: find the client
	// that deleted and created the object in the API server's audit log, and revoke its
	// permission.
	ReasonForgedContent = "ForgedContent"
	// ReasonRolledBack: the rollout of the change failed, and the operator rolled it back. The
	// last good revision is running. The message has the time of the next attempt. Remedy: change
	// the spec or a referenced object.
	ReasonRolledBack = "RolledBack"
	// ReasonDeploymentPaused: the Deployment is paused, so its rollout does not continue. Remedy:
	// run kubectl rollout resume.
	ReasonDeploymentPaused = "DeploymentPaused"
	// ReasonNameConflict: objects that the operator must create already exist and are not its
	// own. The operator does not change them. Remedy: create the NginxOperator under another
	// name, or delete all objects in the message if nothing needs them.
	ReasonNameConflict = "NameConflict"
	// ReasonQuotaExceeded: a ResourceQuota of the namespace rejected a child object or a Pod.
	// Remedy: raise the quota, or lower replicas or resources.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonForbidden: the API server, an admission policy, or a webhook rejected a child object
	// or a Pod. For example, the Pod violates the Pod Security level of the namespace. Remedy:
	// follow the message, or ask for a change of the policy.
	ReasonForbidden = "Forbidden"
	// ReasonInvalidChild: the API server rejected a child object as invalid. Remedy: find the
	// client that changed the child in the message.
	ReasonInvalidChild = "InvalidChild"
	// ReasonNamespaceTerminating: the namespace is being deleted, so the operator cannot create
	// objects. Remedy: use another namespace.
	ReasonNamespaceTerminating = "NamespaceTerminating"
	// ReasonAPIError: requests to the API server for a child object or a Pod keep failing for
	// another reason, and are retried with back-off. Remedy: check the API server, or the webhook
	// in the message.
	ReasonAPIError = "APIError"
	// ReasonImagePullFailed: a container image cannot be pulled. Remedy: correct the image, or
	// add imagePullSecrets.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonContainerConfigError: the kubelet cannot create a container. For example, the image
	// runs as root. Remedy: set spec.securityContext.runAsUser, use an image that meets the
	// requirements, or create the object that the message reports as missing.
	ReasonContainerConfigError = "ContainerConfigError"
	// ReasonCrashLoop: nginx or another container keeps crashing. The message has its exit code
	// and the end of its log. Remedy: correct the image, or raise the memory limit if the message
	// says OOMKilled.
	ReasonCrashLoop = "CrashLoop"
	// ReasonUnschedulable: no node can run a Pod. Remedy: add capacity, or relax podTemplate or
	// resources.
	ReasonUnschedulable = "Unschedulable"
	// ReasonProgressDeadlineExceeded: the rollout made no progress within its deadline, and no
	// other reason is known. Remedy: check the Events of the newest Pods.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonAPIMissing (Ready stays True): a field of the spec requires an API that the cluster
	// does not serve. The operator skips that child object and creates all others, so Pods
	// serve. Remedy: install the API in the message, or remove the field.
	ReasonAPIMissing = "APIMissing"
	// ReasonRouteNotAccepted (Ready stays True): a Gateway does not accept the HTTPRoute or
	// cannot resolve its references. Pods serve. Remedy: correct spec.expose.httpRoute, or the
	// Gateway in the message.
	ReasonRouteNotAccepted = "RouteNotAccepted"
	// ReasonChildContested (Ready stays True): another client keeps changing a child object. The
	// operator has restored it at least five times, at most 15 minutes apart, and keeps restoring
	// it. This is reported until 15 minutes after the last time. Remedy: stop the client with the
	// field manager in the message, or declare its change in the spec.
	ReasonChildContested = "ChildContested"
)
