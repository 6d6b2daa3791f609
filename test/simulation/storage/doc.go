// Package storage models the API server and etcd for the simulation.
//
// It stores objects as JSON, assigns UIDs, resource versions, and generations, checks
// preconditions, applies patches, and collects objects whose owners are gone. Objects have no
// managed fields, because the operator drops them from its caches. It keeps every version, so that
// a watch can lag and a list can be older than the storage. Transport serves it over HTTP to real
// clients. test/integration compares it with a real API server (TestStorageModel).
package storage
