package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/example/nginx-operator/api/v1alpha2"
	"github.com/example/nginx-operator/cmd/kubectl-nginx/printer"
	"github.com/example/nginx-operator/internal/wellknown"
)

// maxFollowed is the maximum number of Pods to follow. Each needs a connection to the API server.
const maxFollowed = 50

type logFlags struct {
	follow, timestamps, previous bool
	tail                         int64
	since                        time.Duration
	container                    string
}

func newLogs(c *cli) *cobra.Command {
	flags := logFlags{}
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Print the logs of all Pods of an instance",
		Long: `Print the logs of all Pods of an instance. Each line starts with the name of its Pod. --follow
follows the Pods that exist at the start, and merges their lines as they arrive.`,
		Example: "  kubectl nginx logs web --tail=20\n  kubectl nginx logs web -f",
	}

	c.onInstance(cmd, func(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator) error {
		return c.logs(ctx, connected, object, &flags)
	})

	f := cmd.Flags()
	f.BoolVarP(&flags.follow, "follow", "f", false, "keep printing new lines")
	f.BoolVar(&flags.timestamps, "timestamps", false, "print the time of each line")
	f.BoolVarP(&flags.previous, "previous", "p", false, "print the logs of the previous containers, before their last restart")
	f.Int64Var(&flags.tail, "tail", -1, "number of recent lines per Pod; negative for all lines")
	f.DurationVar(&flags.since, "since", 0, "print only lines newer than this, for example 5m; 0 for all lines")
	f.StringVarP(&flags.container, "container", "c", wellknown.OperandContainer, "container")
	return cmd
}

func (f *logFlags) options() *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{
		Container: f.container, Follow: f.follow, Timestamps: f.timestamps, Previous: f.previous,
	}
	if f.tail >= 0 {
		options.TailLines = &f.tail
	}
	if f.since > 0 {
		options.SinceSeconds = ptr.To(max(1, int64(f.since.Round(time.Second)/time.Second)))
	}
	return options
}

func (c *cli) logs(ctx context.Context, connected *connection, object *v1alpha2.NginxOperator, flags *logFlags) error {
	pods, err := connected.pods(ctx, object)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return noPods(object)
	}
	if flags.follow && len(pods) > maxFollowed {
		return fmt.Errorf("NginxOperator %q has %d Pods, and --follow supports at most %d. "+
			"Remove --follow, or follow single Pods with kubectl logs -f", object.Name, len(pods), maxFollowed)
	}

	var group errgroup.Group
	if !flags.follow {
		group.SetLimit(1) // one log after the other
	}

	errs := make([]error, len(pods))
	for i := range pods {
		group.Go(func() error {
			stream, err := connected.core.CoreV1().Pods(pods[i].Namespace).GetLogs(pods[i].Name, flags.options()).Stream(ctx)
			if err == nil {
				err = copyLines(c.Out, stream, prefix(pods[i].Name, flags.container, i, printer.PainterOf(c.Out)))
			}
			if err != nil && ctx.Err() == nil {
				errs[i] = fmt.Errorf("failed to read the log of Pod %s: %w", pods[i].Name, err)
			}
			return nil
		})
	}

	return errors.Join(append(errs, group.Wait())...)
}

// prefix returns the prefix of the lines of a Pod, as in kubectl logs --prefix.
func prefix(pod, container string, number int, paint printer.Painter) string {
	colors := []string{printer.Cyan, printer.Green, printer.Yellow}
	return paint.Paint(colors[number%len(colors)], printer.Line(fmt.Sprintf("[pod/%s/%s]", pod, container))) + " "
}

// maxLine is the maximum length of a line. The rest of a longer line is printed as another line.
const maxLine = 64 << 10

// copyLines writes each line of a source with a prefix, in one Write, and closes the source.
func copyLines(to io.Writer, from io.ReadCloser, prefix string) (err error) {
	defer func() { err = errors.Join(err, from.Close()) }()
	reader := bufio.NewReaderSize(from, maxLine)
	for {
		line, errRead := reader.ReadSlice('\n')
		if len(line) > 0 {
			if _, err := fmt.Fprintf(to, "%s%s\n", prefix, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
				return err
			}
		}

		if errors.Is(errRead, io.EOF) {
			return nil
		}
		if errRead != nil && !errors.Is(errRead, bufio.ErrBufferFull) {
			return errRead
		}
	}
}
