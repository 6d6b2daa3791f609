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
		Short: "Write the NginxOperator that takes the place of a Deployment or of tsuru's Nginx",
		Long: `Write the NginxOperator that takes the place of a Deployment, with its ConfigMaps and its
Service in the same manifests, or of a Nginx of tsuru/nginx-operator. What could not be carried
over stands in comments before it. No cluster is asked.`,
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
			results, err := migrate.From(manifests)
			if err != nil {
				return err
			}
			if name != "" && len(results) > 1 {
				return errors.New("--name is for one workload, and the manifests have several")
			}
			for i := range results {
				if name != "" {
					results[i].Object.Name = name
				}
				if err := c.writeResult(&results[i], i > 0); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&files, "filename", "f", nil, "files, directories or URLs with manifests, - for standard input")
	cmd.Flags().StringVar(&name, "name", "", `name of the NginxOperator (default: that of the workload with "-web")`)
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

// readLocally returns the manifests of files without asking a cluster.
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
