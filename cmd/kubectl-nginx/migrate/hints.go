package migrate

import "cmp"

// Advice for more than one field.
const (
	restricted  = "the operator's Pods comply with Pod Security restricted; set values that restricted allows with spec.patches"
	noHost      = "Pod Security restricted forbids it; use spec.service.type NodePort or LoadBalancer"
	ownCommand  = "the operator starts nginx; move settings to spec.nginx or spec.config"
	onlyHTTP    = "the operator serves HTTP only"
	onlyTCP     = "the operator serves HTTP over TCP only"
	noEntry     = "the operator does not run the entry point of the image, which reads these files; write the result to spec.config"
	template    = "the operator does not run the entry point, which fills in templates; move them to spec.config, with spec.config.values"
	byPatch     = "no field supports it; mount the volume with spec.patches instead of spec.volumes"
	operators   = "the operator sets its own"
	ownMain     = "the operator has its own nginx.conf; copy the content of the http block to spec.config, and the rest to spec.nginx"
	notIncluded = "the operator's nginx.conf does not include files of this directory; move them to spec.config"
)

// hints are the advice for fields without an equivalent.
var hints = map[string]string{
	"command":                      ownCommand,
	"args":                         ownCommand,
	"envFrom":                      "list each variable in spec.env",
	"hostNetwork":                  noHost,
	"hostPort":                     noHost,
	"hostIP":                       noHost,
	"hostPID":                      restricted,
	"hostIPC":                      restricted,
	"loadBalancerIP":               "Kubernetes deprecated it; use an annotation of your load balancer in spec.service.annotations",
	"hostPath":                     "Pod Security restricted forbids it; for alternatives, see spec.volumes",
	"postStart":                    "use spec.initContainers or spec.sidecars",
	"preStop":                      "the operator waits for open connections itself; see spec.drainSeconds",
	"usePodSelector":               "the operator's Service always selects the Pods",
	"imagePullPolicy":              "the operator sets IfNotPresent; use an image with a version or a digest, or see spec.patches",
	"automountServiceAccountToken": "the token is not mounted; if a container needs it, add a projected volume to spec.volumes",
	"revisionHistoryLimit":         "the operator sets its own; for the revision that it can restore, see status.lastGoodRevision",
	"paused":                       "the operator manages the Deployment; see spec.paused",
	"hostUsers":                    "no field supports it; see spec.patches",
	"publishNotReadyAddresses":     "the operator's Service has only ready Pods",
	"externalIPs":                  "neither a field nor spec.patches can set it; create a Service with it yourself",
	"externalName":                 "the operator's Service selects the Pods",
	"stopSignal":                   "the operator stops nginx gracefully; see spec.drainSeconds",
	"terminationMessagePath":       operators,
	"restartPolicy":                operators,
	"restartPolicyRules":           operators,
	"mountPropagation":             byPatch,
	"recursiveReadOnly":            byPatch,
	"subPathExpr":                  byPatch,
	"bindMountOptions":             byPatch,
}

func whyNot(name string) string {
	return cmp.Or(hints[name], "no field supports it; see spec.patches")
}
