package command

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/migrate"
)

func newMigrate(c *cli) *cobra.Command {
	var files []string
	var name string
	cmd := &cobra.Command{
		Use:   "migrate -f FILENAME",
		Short: "Convert a Deployment or tsuru's Nginx into an NginxOperator",
		Long: `Print an NginxOperator that replaces a Deployment, or an Nginx of tsuru/nginx-operator. Include
the ConfigMaps and the Service of the Deployment in the manifests. Comments list the fields
that have no equivalent, and the differences to check. The command does not connect to a
cluster.`,
		Example: "  kubectl nginx migrate -f shop.yaml > shop-web.yaml\n" +
			"  kubectl get deployment/shop configmap/shop service/shop -o yaml | kubectl nginx migrate -f -",
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			if len(files) == 0 {
				return errors.New("must specify -f")
			}
			manifests, err := c.readLocally(files)
			if err != nil {
				return err
			}
			results, err := migrate.From(manifests, name)
			if err != nil {
				return err
			}
			for i := range results {
				if err := c.writeResult(&results[i], i > 0); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "files, directories, or URLs with manifests; - for standard input")
	cmd.Flags().StringVar(&name, "name", "", `name of the NginxOperator (default: the name of the workload with the suffix -web)`)
	return cmd
}

func (c *cli) writeResult(result *migrate.Result, separated bool) error {
	raw, err := result.YAML()
	if separated {
		raw = append([]byte("---\n"), raw...)
	}
	if err == nil {
		_, err = c.Out.Write(raw)
	}
	return err
}

// readLocally returns the manifests in files. It does not connect to a cluster.
func (c *cli) readLocally(files []string) ([]*unstructured.Unstructured, error) {
	found := resource.NewLocalBuilder().Unstructured().FilenameParam(false, &resource.FilenameOptions{Filenames: files}).Flatten().Do()
	infos, err := found.Infos()
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, info := range infos {
		out = append(out, info.Object.(*unstructured.Unstructured))
	}
	return out, nil
}
