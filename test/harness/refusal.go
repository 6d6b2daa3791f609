package harness

import "strings"

// RefusalName is the name of the admission policy of Refusal and of its binding.
const RefusalName = "nginx-operator-test-refusal"

// Refusal returns the manifests of an admission policy and its binding. They reject every update of
// NginxOperators with the given name, including status updates, with the message "nobody changes
// NAME".
func Refusal(object string) string {
	return strings.NewReplacer("OBJECT", object, "POLICY", RefusalName).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: POLICY
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - apiGroups: [operator.example.com]
      apiVersions: ["*"]
      operations: [UPDATE]
      resources: [nginxoperators, nginxoperators/status]
  validations:
  - expression: object.metadata.name != "OBJECT"
    message: nobody changes OBJECT
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: POLICY
spec:
  policyName: POLICY
  validationActions: [Deny]
`)
}
