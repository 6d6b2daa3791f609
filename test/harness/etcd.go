package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// storedPrefix is the prefix of the etcd keys of NginxOperators.
	storedPrefix = "/registry/operator.example.com/nginxoperators/"
	// storedPage is the maximum number of objects per request.
	storedPage = 500
)

// rangeRequest and rangeResponse are messages of etcd's v3 API, in the JSON form of its HTTP
// gateway. In this form, bytes are base64 and 64-bit numbers are strings.
type rangeRequest struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end"`
	Limit    int64  `json:"limit,string"`
	Revision int64  `json:"revision,string"`
}

type rangeResponse struct {
	Header struct {
		Revision int64 `json:"revision,string"`
	} `json:"header"`
	KVs []struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	} `json:"kvs"`
	More bool `json:"more"`
}

// StoredVersions reads from etcd the apiVersion at which each NginxOperator is stored, by
// namespace/name. The API server does not report it, because it converts objects to the version
// that the client requests. The endpoint is an HTTP address of etcd that requires no client
// certificate, for example http://127.0.0.1:2379. All pages are read at the same revision.
func StoredVersions(ctx context.Context, endpoint string) (map[string]string, error) {
	versions := map[string]string{}
	// "0" is the byte after "/", so the range contains all keys with the prefix.
	request := rangeRequest{Key: []byte(storedPrefix), RangeEnd: []byte(strings.TrimSuffix(storedPrefix, "/") + "0"), Limit: storedPage}
	for {
		page, err := readRange(ctx, endpoint, request)
		if err != nil {
			return nil, err
		}
		for _, kv := range page.KVs {
			object := struct {
				APIVersion string `json:"apiVersion"`
			}{}
			if err := json.Unmarshal(kv.Value, &object); err != nil {
				return nil, fmt.Errorf("failed to decode %s of etcd: %w", kv.Key, err)
			}
			versions[strings.TrimPrefix(string(kv.Key), storedPrefix)] = object.APIVersion
		}
		if !page.More || len(page.KVs) == 0 {
			return versions, nil
		}
		// The smallest key after the last key of this page.
		request.Key = append(bytes.Clone(page.KVs[len(page.KVs)-1].Key), 0)
		request.Revision = page.Header.Revision
		if request.Revision == 0 {
			return nil, fmt.Errorf("failed to read from etcd: the answer of %s names no revision", endpoint)
		}
	}
}

// Store writes an NginxOperator to etcd, bypassing the API server, which would reject it. The
// object is JSON.
func Store(ctx context.Context, endpoint, namespace, name string, object []byte) error {
	_, err := ask(ctx, endpoint, "put", struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}{[]byte(storedPrefix + namespace + "/" + name), object})
	return err
}

func readRange(ctx context.Context, endpoint string, request rangeRequest) (*rangeResponse, error) {
	answer, err := ask(ctx, endpoint, "range", request)
	if err != nil {
		return nil, err
	}
	page := &rangeResponse{}
	if err := json.Unmarshal(answer, page); err != nil {
		return nil, fmt.Errorf("failed to decode the answer of etcd: %w", err)
	}
	return page, nil
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
