// Package deploy tests the files of this directory, which run chorale on clusters:
// docs/cluster.md explains them. It is a module of its own, so that a program that uses
// chorale does not depend on those of Kubernetes.
package deploy
