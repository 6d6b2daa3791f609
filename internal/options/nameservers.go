package options

import (
	"net/netip"
	"os"
	"slices"
	"strings"
)

// Nameservers returns the name servers that the cluster gives its Pods: those of the flag, or else
// those of the operator's own resolv.conf, or nil if they are unknown.
func (o *Options) Nameservers(resolvConf string) []string {
	if len(o.ClusterNameservers) > 0 {
		return o.ClusterNameservers
	}
	text, _ := os.ReadFile(resolvConf) // #nosec G304 -- the caller's constant
	return nameserversIn(string(text))
}

// nameserversIn returns the name servers of a resolv.conf that the kubelet wrote for a Pod with
// dnsPolicy ClusterFirst: its search list has a domain of Services. Any other one has other servers.
func nameserversIn(text string) (servers []string) {
	isCluster := false
	for line := range strings.Lines(text) {
		switch words := strings.Fields(line); {
		case len(words) > 1 && words[0] == "nameserver" && isNameserver(words[1]):
			servers = append(servers, words[1])
		case len(words) > 1 && words[0] == "search":
			isCluster = slices.ContainsFunc(words, func(domain string) bool { return strings.HasPrefix(domain, "svc.") })
		}
	}
	if !isCluster {
		return nil
	}
	return servers
}

// isNameserver reports whether a text is an IP address with an optional port.
func isNameserver(text string) bool {
	_, err := netip.ParseAddr(text)
	_, errWithPort := netip.ParseAddrPort(text)
	return err == nil || errWithPort == nil
}
