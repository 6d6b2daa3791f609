package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// storedPrefix is the prefix of the etcd keys of NginxOperators.
const storedPrefix = "/registry/operator.example.com/nginxoperators/"

// etcdPage is the number of objects per request, because etcd keeps an answer in memory as a whole.
const etcdPage = 5000

// keyValue is a message of etcd's v3 API, in the JSON form of its HTTP gateway: bytes are base64,
// and numbers of 64 bits are strings.
type keyValue struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// rangeRequest asks for the keys from Key to End, without End.
type rangeRequest struct {
	Key   []byte `json:"key"`
	End   []byte `json:"range_end,omitempty"`
	Limit int    `json:"limit"`
}

type rangeResponse struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	KVs  []keyValue `json:"kvs"`
	More bool       `json:"more"`
}

// StoredVersions reads from etcd the apiVersion at which each NginxOperator is stored, by
// namespace/name. The API server does not report it, because it converts objects to the version
// that the client requests. The endpoint is an HTTP address of etcd that requires no client
// certificate, for example http://127.0.0.1:2379.
func StoredVersions(ctx context.Context, endpoint string) (map[string]string, error) {
	versions := map[string]string{}
	// "0" is the byte after "/", so the range contains all keys with the prefix.
	request := rangeRequest{Key: []byte(storedPrefix), End: []byte(strings.TrimSuffix(storedPrefix, "/") + "0"), Limit: etcdPage}
	for more := true; more; {
		stored, err := readRange(ctx, endpoint, request)
		if err != nil {
			return nil, err
		}
		for _, kv := range stored.KVs {
			var object metav1.TypeMeta
			if err := json.Unmarshal(kv.Value, &object); err != nil {
				return nil, fmt.Errorf("failed to decode %s of etcd: %w", kv.Key, err)
			}
			versions[strings.TrimPrefix(string(kv.Key), storedPrefix)] = object.APIVersion
		}
		if more = stored.More && len(stored.KVs) > 0; more {
			last := stored.KVs[len(stored.KVs)-1].Key
			request.Key = slices.Concat(last, []byte{0}) // the next possible key
		}
	}
	return versions, nil
}

// Compact removes the history of etcd, as the API server does every five minutes. After that, the
// API server can no longer continue a list that a client has started before, except with the newer
// objects.
func Compact(ctx context.Context, endpoint string) error {
	now, err := readRange(ctx, endpoint, rangeRequest{Key: []byte(storedPrefix), Limit: 1})
	if err != nil {
		return err
	}
	_, err = ask(ctx, endpoint, "compaction", map[string]any{"revision": now.Header.Revision, "physical": true})
	return err
}

func readRange(ctx context.Context, endpoint string, request rangeRequest) (*rangeResponse, error) {
	answer, err := ask(ctx, endpoint, "range", request)
	if err != nil {
		return nil, err
	}
	response := &rangeResponse{}
	if err := json.Unmarshal(answer, response); err != nil {
		return nil, fmt.Errorf("failed to decode the answer of etcd: %w", err)
	}
	return response, nil
}

// Store writes an NginxOperator to etcd, bypassing the API server, which would reject it. The
// object is JSON.
func Store(ctx context.Context, endpoint, namespace, name string, object []byte) error {
	_, err := ask(ctx, endpoint, "put", keyValue{[]byte(storedPrefix + namespace + "/" + name), object})
	return err
}

// ask sends one request to etcd's key-value service and returns the response body.
func ask(ctx context.Context, endpoint, method string, request any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("failed to encode the request to etcd: %w", err)
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(endpoint, "/")+"/v3/kv/"+method, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("failed to ask etcd: %w", err)
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, fmt.Errorf("failed to ask etcd: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("failed to read the answer of etcd: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd refused the request: %s: %s", response.Status, answer)
	}
	return answer, nil
}
