// The program gallery draws the figures of docs/gallery.md and docs/guide.md with
// the commands on those pages, so that both agree. Run it with go generate.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:generate go run .

func main() {
	if err := run("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
		os.Exit(1)
	}
}

// pages are the pages of docs with figures, and the directory of each one's.
var pages = []struct{ file, figures string }{{"gallery.md", "gallery"}, {"guide.md", "guide"}}

// run draws all figures of a repository.
func run(repository string) error {
	var figures []figure
	for _, page := range pages {
		text, err := os.ReadFile(filepath.Join(repository, "docs", page.file))
		if err != nil {
			return err
		}
		more, err := parse(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", page.file, err)
		}
		figures = append(figures, more...)
	}
	dir, err := os.MkdirTemp("", "gallery")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chorale, err := build(repository, dir)
	if err != nil {
		return err
	}
	for _, f := range figures {
		if err := f.draw(chorale, repository); err != nil {
			return err
		}
	}
	return nil
}

// build makes the command, and returns its path.
func build(repository, dir string) (string, error) {
	chorale := filepath.Join(dir, "chorale.exe") // Windows needs the suffix, other systems allow it
	c := exec.Command("go", "build", "-o", chorale, "./cmd/chorale")
	c.Dir = repository
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %v: %s", err, out)
	}
	return chorale, nil
}

// A figure is an image of the page with the command that draws it.
type figure struct {
	file string   // within docs
	alt  string   // the text alternative
	args []string // of chorale
}

// draw runs the command in the repository, to which its paths are relative.
func (f figure) draw(chorale, repository string) error {
	c := exec.Command(chorale, f.args...)
	c.Dir = repository
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("chorale %s: %v: %s", strings.Join(f.args, " "), err, out)
	}
	return nil
}

// parse finds the figures of a page. Each is an image, followed by the command
// that draws it:
//
//	![what it shows](gallery/file.svg)
//
//	    chorale draw … -o docs/gallery/file.svg
//
// The command may stand in a comment of the page. A backslash at the end of a line
// joins it with the next line.
func parse(text string) (figures []figure, err error) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	var open *figure
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if image, ok := strings.CutPrefix(line, "!["); ok {
			if open != nil {
				return nil, fmt.Errorf("%s has no command", open.file)
			}
			alt, file, ok := strings.Cut(strings.TrimSuffix(image, ")"), "](")
			if !ok || alt == "" {
				return nil, fmt.Errorf("line %d: an image without words: want ![what it shows](gallery/FILE)", i+1)
			}
			open = &figure{file: file, alt: alt}
		}
		if command, ok := strings.CutPrefix(line, "chorale draw "); ok {
			if open == nil {
				return nil, fmt.Errorf("line %d: a command without an image before it", i+1)
			}
			open.args = append([]string{"draw"}, words(command)...)
			if last := open.args[len(open.args)-1]; last != "docs/"+open.file {
				return nil, fmt.Errorf("line %d: draws %s: want docs/%s", i+1, last, open.file)
			}
			figures = append(figures, *open)
			open = nil
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s has no command", open.file)
	}
	return figures, nil
}

// words splits a command into words. Single quotes are the only quotes.
func words(command string) (all []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
