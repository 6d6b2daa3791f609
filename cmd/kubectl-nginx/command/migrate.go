package command

import (
	"bytes"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/migrate"
)

func newMigrate(c *cli) *cobra.Command {
	var from files
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
		RunE: func(*cobra.Command, []string) error {
			manifests, err := from.read(resource.NewLocalBuilder(), false)
			if err != nil {
				return err
			}

			results, err := migrate.From(manifests, name)
			if err != nil {
				return err
			}

			var documents [][]byte
			for i := range results {
				document, err := results[i].YAML()
				if err != nil {
					return err
				}
				documents = append(documents, document)
			}

			_, err = c.Out.Write(bytes.Join(documents, []byte("---\n")))
			return err
		},
	}

	from.add(cmd)
	cmd.Flags().StringVar(&name, "name", "", `name of the NginxOperator (default: the name of the workload with the suffix -web)`)
	return cmd
}
