package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/test/harness/apiserver"
)

// watchedResources are the resources that the operator lists and watches in a watched namespace.
var watchedResources = []string{
	"nginxoperators", "configmaps", "secrets", "services", "pods", "deployments", "replicasets", "controllerrevisions", "endpointslices",
	"ingresses", "networkpolicies", "poddisruptionbudgets", "horizontalpodautoscalers", "httproutes", "podmonitors", "prometheusrules",
}

// TestOneNamespaceWithoutAccess takes one permission away in each of many namespaces, to list one
// kind or to watch another, while the operator runs, and then starts the next leader. Each time, a
// change in the namespace with all permissions is applied. When the permissions exist again, the
// same process reconciles all namespaces.
func TestOneNamespaceWithoutAccess(t *testing.T) {
	operator := startWatching(t)
	operator.Stop()
	proxy := newCutter(t)
	type lack struct {
		verb, resource string
		role           *rbacv1.Role
	}
	lacks, namespaces := map[string]lack{}, []string{watchedNamespace}
	for i, resource := range watchedResources {
		verb := []string{"list", "watch"}[i%2]
		namespace := "without-" + verb + "-" + resource
		create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		lacks[namespace] = lack{verb, resource, grantAll(t, namespace)}
		namespaces = append(namespaces, namespace)
	}
	operator = startWatcher(t, namespaces...)
	for _, namespace := range namespaces {
		create(t, newInstance(namespace, "web"))
	}
	for _, namespace := range namespaces {
		waitForChildren(t, namespace, "web")
	}
	all := slices.Clone(lacks[namespaces[1]].role.Rules)
	replicas := int32(2)
	applied := func(situation string, namespaces ...string) {
		t.Helper()
		replicas++
		for _, namespace := range namespaces {
			update(t, newInstance(namespace, "web"), func(object *v1alpha2.NginxOperator) { object.Spec.Replicas = ptr.To(replicas) })
		}
		for _, namespace := range namespaces {
			waitFor(t, func() error {
				found, err := childrenOf(t.Context(), namespace, "web")
				if err == nil && (found.deployment == nil || ptr.Deref(found.deployment.Spec.Replicas, 0) != replicas) {
					err = fmt.Errorf("%s: the change of the object in namespace %s is not applied", situation, namespace)
				}
				return err
			})
		}
	}
	// reported requires that the operator knows of each missing permission to watch. It may not
	// need to list: watches continue after their connection, and can begin with a list.
	reported := func(situation string) {
		t.Helper()
		waitFor(t, func() error {
			var unreported []string
			for namespace, lacks := range lacks {
				const message = `Missing a permission, so no instance of this namespace is reconciled.*`
				line := regexp.MustCompile(message + `"namespace":"` + namespace + `","verb":"watch"`)
				if lacks.verb == "watch" && !line.MatchString(operator.Log()) {
					unreported = append(unreported, namespace)
				}
			}
			if len(unreported) > 0 {
				return fmt.Errorf("%s: the log does not have %s", situation, unreported)
			}
			return nil
		})
	}

	const lost, next = "after the permissions are lost", "with the next leader"
	for _, lack := range lacks {
		update(t, lack.role, func(role *rbacv1.Role) { role.Rules = without(all, lack.resource, lack.verb) })
	}
	// A watch that begins again while the API server still allows it would outlive the permission,
	// too.
	for namespace, lack := range lacks {
		access := authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: lack.verb, Resource: lack.resource, Group: groupOf(all, lack.resource),
		}
		review := authorizationv1.SubjectAccessReviewSpec{User: operatorUser, ResourceAttributes: &access}
		must(t, apiserver.AwaitAccess(t.Context(), suite.admin, review, false))
	}
	proxy.cut()
	reported(lost)
	applied(lost, watchedNamespace)
	operator.Stop()
	operator = startWatcher(t, namespaces...)
	reported(next)
	applied(next, watchedNamespace)

	for _, lack := range lacks {
		update(t, lack.role, func(role *rbacv1.Role) { role.Rules = all })
	}
	applied("with all permissions again", namespaces...)
	select {
	case <-operator.Done():
		t.Error("the operator has ended:", operator.Summary())
	default:
	}
}

// grantAll allows the operator in a namespace what the ClusterRole of watched namespaces allows,
// and returns the Role.
func grantAll(t *testing.T, namespace string) *rbacv1.Role {
	t.Helper()
	of := &rbacv1.ClusterRole{}
	must(t, suite.admin.Get(t.Context(), client.ObjectKey{Name: "nginx-operator-manager-role"}, of))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nginx-operator"}, Rules: of.Rules}
	create(t, role)
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "nginx-operator"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: operatorNamespace, Name: "nginx-operator-controller-manager"}},
	})
	return role
}

// without returns rules that do not allow a verb for a resource.
func without(rules []rbacv1.PolicyRule, resource, verb string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, allowed := range rule.Resources {
			one := *rule.DeepCopy()
			one.Resources = []string{allowed}
			if allowed == resource {
				one.Verbs = slices.DeleteFunc(one.Verbs, func(of string) bool { return of == verb })
			}
			out = append(out, one)
		}
	}
	return out
}

// groupOf returns the API group of a resource that the rules have.
func groupOf(rules []rbacv1.PolicyRule, resource string) string {
	return rules[slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) })].APIGroups[0]
}

// cutter forwards connections to the API server, and can cut all of them. A watch outlives its
// permission, and ends only with its connection or after minutes.
type cutter struct {
	address string
	mu      sync.Mutex
	open    []net.Conn
}

// newCutter starts a cutter, and makes the next operators connect to it.
func newCutter(t *testing.T) *cutter {
	t.Helper()
	server := must1(url.Parse(suite.config.Host))(t)
	listener := must1(net.Listen("tcp", "127.0.0.1:0"))(t)
	out := &cutter{address: server.Host}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for ctx.Err() == nil {
			if connection, err := listener.Accept(); err == nil {
				go out.forward(connection)
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		out.cut()
	})
	kubeconfig := string(must1(os.ReadFile(suite.kubeconfig))(t))
	suite.kubeconfig = filepath.Join(suite.dir, "cut.kubeconfig")
	replaced := strings.ReplaceAll(kubeconfig, server.Host, listener.Addr().String())
	if replaced == kubeconfig {
		t.Fatalf("the kubeconfig does not have %s", server.Host)
	}
	must(t, os.WriteFile(suite.kubeconfig, []byte(replaced), 0o600))
	return out
}

func (c *cutter) forward(from net.Conn) {
	to, err := net.Dial("tcp", c.address)
	if err != nil {
		_ = from.Close()
		return
	}
	c.mu.Lock()
	c.open = append(c.open, from, to)
	c.mu.Unlock()
	go func() { _, _ = io.Copy(to, from) }()
	_, _ = io.Copy(from, to)
}

// cut ends all connections.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.open {
		_ = one.Close()
	}
	c.open = nil
}
