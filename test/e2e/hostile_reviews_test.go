package e2e

import (
	"fmt"
	"strings"

	"github.com/example/nginx-operator/internal/conversion"
	"github.com/example/nginx-operator/internal/webhook"
	"github.com/example/nginx-operator/pkg/bounds"
)

// hostileReview is a body that is small but expensive to decode, and the URL to which it is posted.
type hostileReview struct {
	what, url, body string
}

// hostileReviews returns the reviews to post. A full run posts each one to each path of each
// replica. The paths and the replicas decode them alike, so the gate posts each one once, and
// something to each path and each replica. It also posts fewer objects at a time, because those of
// a full run take longer than a client waits.
func hostileReviews(webhooks []string) (out []hostileReview) {
	add := func(reviews map[string]string, paths ...string) {
		var urls []string
		for _, path := range paths {
			for _, address := range webhooks {
				urls = append(urls, "https://"+address+path)
			}
		}
		n := 0
		for what, body := range reviews {
			for _, url := range scaled([]string{of(urls, n)}, urls) {
				out = append(out, hostileReview{what, url, body})
			}
			n++
		}
	}
	add(hostileAdmissions(), webhook.PathCRD, webhook.PathDefault, webhook.PathValidate, webhook.PathV1alpha1)
	add(hostileConversions(), conversion.Path)
	return out
}

// hostileAdmissions returns bodies of AdmissionReviews by name.
func hostileAdmissions() map[string]string {
	fill := func(before, element, after string, size int) string {
		return before + strings.Repeat(element+",", (size-len(before)-len(after))/(len(element)+1)-1) + element + after
	}
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",`
	crd := head + `"request":{"uid":"1","operation":"UPDATE","name":"nginxoperators.operator.example.com",` +
		`"userInfo":{"username":"` + strings.Repeat(`forged\n`, 10_000) + `"},"object":{"spec":{"versions":[{"name":"v1alpha2",`
	return map[string]string{
		"schemas of a CRD": fill(crd+`"schema":{"openAPIV3Schema":{"allOf":[`, "{}", `]}}}]}}}}`, 4_500_000),
		"causes":           fill(head+`"response":{"status":{"details":{"causes":[`, "{}", `]}}}}`, bounds.MaxReviewBytes),
		"groups":           fill(head+`"request":{"uid":"1","userInfo":{"groups":[`, `""`, `]}}}`, bounds.MaxReviewBytes),
		"elements of a spec": fill(
			head+`"request":{"uid":"1","operation":"CREATE","object":{"spec":{"tolerations":[`, "{}", `]}}}}`, bounds.MaxReviewBytes),
		"depth":   head + `"request":{"object":` + strings.Repeat("[", 3<<20) + strings.Repeat("]", 3<<20) + `}}`,
		"YAML":    "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
		"nothing": "",
	}
}

// hostileConversions returns bodies of ConversionReviews by name.
func hostileConversions() map[string]string {
	head := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",`+
		`"request":{"uid":"%s","desiredAPIVersion":%q,"objects":[`,
		strings.Repeat(`forged\n`, 10_000), "operator.example.com/v1alpha1")
	object := `{"apiVersion":"operator.example.com/v1alpha2","kind":"NginxOperator","metadata":{"name":"web"},"spec":%s}`
	list := func(spec string, count int) string {
		one := fmt.Sprintf(object, spec)
		return head + strings.Repeat(one+",", count-1) + one + "]}}"
	}
	return map[string]string{
		"many elements":   list(`{"ports":[`+strings.Repeat(`{"a":1},`, 100_000)+`{}]}`, 10),
		"depth":           list(`{"a":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+"}", 10),
		"too deep":        list(strings.Repeat("[", 1<<20)+strings.Repeat("]", 1<<20), 1),
		"one long object": list(`{"a":"`+strings.Repeat("x", 40<<20)+`"}`, 1),
		"many objects":    list(`{"replicas":0}`, scaled(20_000, 400_000)),
		"others' objects": strings.ReplaceAll(list("{}", 10), "NginxOperator", "Pod"),
		"no JSON":         head + "]]]]",
	}
}
