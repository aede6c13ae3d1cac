//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

var errNoNamespaces = errors.New("network namespaces are there on Linux only")

func checkNamespaces() error { return errNoNamespaces }

func enterNamespace(string) []string { return nil }

func (p *program) onNamespaces(context.Context, string, io.Writer, io.Writer) error {
	return errNoNamespaces
}

func cutOff(bool) error { return errNoNamespaces }
