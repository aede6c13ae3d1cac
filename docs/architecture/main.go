// The program architecture makes two parts of docs/architecture.md from
// packages.txt, the table that the test of this package holds the imports to: the
// picture, and the table of packages. It is run by go generate.
package main

import (
	"fmt"
	"os"
)

//go:generate go run .

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "architecture:", err)
		os.Exit(1)
	}
}

// run writes the picture and the page.
func run() error {
	picture, page, err := generate()
	if err != nil {
		return err
	}
	if err := os.WriteFile(pictureFile, []byte(picture), 0o666); err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(page), 0o666)
}

// generate returns what the two files should hold.
func generate() (picture, page string, err error) {
	table, err := os.ReadFile(tableFile)
	if err != nil {
		return "", "", err
	}
	rows, err := parse(string(table))
	if err != nil {
		return "", "", err
	}
	old, err := os.ReadFile(pageFile)
	if err != nil {
		return "", "", err
	}
	page, err = insert(string(old), rows)
	return newDrawing(rows).svg(), page, err
}
