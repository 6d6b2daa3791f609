package command

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/example/nginx-operator/cmd/kubectl-nginx/migrate"
	"github.com/example/nginx-operator/internal/nginxconf"
)

func newMigrate(c *cli) *cobra.Command {
	var from files
	var name string
	cmd := &cobra.Command{
		Use:   "migrate -f FILENAME",
		Short: "Convert a Deployment, tsuru's Nginx, or an nginx.conf into an NginxOperator",
		Long: `Print an NginxOperator that replaces a Deployment, an Nginx of tsuru/nginx-operator, or an
nginx.conf. Include the ConfigMaps and the Service of the Deployment in the manifests. Comments
list the fields and directives that have no equivalent, and the differences to check. The
command does not connect to a cluster.

An nginx.conf is a file without apiVersion and kind: a complete nginx.conf, or server blocks as
in conf.d. Use it as the only file.`,
		Example: "  kubectl nginx migrate -f shop.yaml > shop-web.yaml\n" +
			"  kubectl get deployment/shop configmap/shop service/shop -o yaml | kubectl nginx migrate -f -\n" +
			"  kubectl nginx migrate -f nginx.conf --name shop > shop.yaml",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			results, err := c.convert(from, name)
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
	const usage = "name of the NginxOperator (default: the name of the workload or of the file with the suffix -web)"
	cmd.Flags().StringVar(&name, "name", "", usage)
	return cmd
}

// maxStart bounds the comments before the first word, which shows whether it is a configuration.
const maxStart = 64 << 10

func (c *cli) convert(from files, name string) ([]migrate.Result, error) {
	builder, manifests := resource.NewLocalBuilder().Unstructured(), files{}
	for _, file := range from {
		opened, isStream := c.open(file)
		reader := bufio.NewReaderSize(opened, maxStart)
		start, _ := reader.Peek(maxStart) // reading the rest returns the error again
		switch {
		case migrate.IsConfiguration(start) && len(from) > 1:
			return nil, fmt.Errorf("%s is a configuration of nginx, not a manifest. Convert it without other files", file)
		case migrate.IsConfiguration(start):
			text, err := io.ReadAll(io.LimitReader(reader, nginxconf.MaxBytes+1)) // a larger one is an error
			if err != nil {
				return nil, fmt.Errorf("failed to read %s: %w", file, err)
			}
			result, err := migrate.FromFile(filepath.Base(file), string(text), name)
			return []migrate.Result{result}, err
		case isStream:
			builder.Stream(reader, file)
		default:
			manifests = append(manifests, file)
		}
	}

	objects, err := manifests.read(builder, false)
	if err != nil {
		return nil, err
	}
	return migrate.From(objects, name)
}

// open returns no text for a URL, a pattern, and a file that cannot be read, which fails later.
func (c *cli) open(file string) (opened io.Reader, isStream bool) {
	if file == "-" {
		return c.In, true
	}
	from, err := os.Open(file) //nolint:gosec // the user's own file
	if err != nil {
		return strings.NewReader(""), false
	}
	info, err := from.Stat()
	return from, err == nil && !info.IsDir() && !info.Mode().IsRegular()
}
