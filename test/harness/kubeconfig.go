package harness

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
)

// WriteKubeconfigAs writes a kubeconfig with which kubectl acts as another user. The first one is
// that of a user who may impersonate others, or "" for the kubeconfig that kubectl uses.
func WriteKubeconfigAs(user, kubeconfig, file string) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if kubeconfig != "" {
		rules.ExplicitPath = kubeconfig
	}
	config, err := rules.Load()
	if err != nil {
		return fmt.Errorf("failed to read the kubeconfig: %w", err)
	}

	// The next file can be in another directory.
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return fmt.Errorf("failed to resolve the paths in the kubeconfig: %w", err)
	}
	for _, credentials := range config.AuthInfos {
		credentials.Impersonate = user
	}

	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return fmt.Errorf("failed to write the kubeconfig of %s: %w", user, err)
	}
	return nil
}
