// Package cached reads objects of the operator's cache. The cache has only some fields of an object
// (internal/operatormanager). The functions here return the same for a whole object and for its form
// in the cache.
package cached

// InstanceIndex is the cache's index (client.MatchingFields) of objects by NginxOperator: by the
// controlling NginxOperator, or by the label if another controller creates the objects. Without the
// index, each list would visit all objects of the namespace. A list requires a namespace.
const InstanceIndex = "instance"
