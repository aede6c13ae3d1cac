package command

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

const exercisesPage = repository + "/docs/exercises.md"

var (
	answers  = regexp.MustCompile("\\*\\*`([^`]+)`\\*\\*")
	examples = regexp.MustCompile("(?s)```sh\n(.*?)```")
)

// The answers of an exercise are printed by its commands, of which each prints one of them.
func TestTheCommandsOfAnExercisePrintItsAnswers(t *testing.T) {
	page, err := os.ReadFile(exercisesPage)
	if err != nil {
		t.Fatal(err)
	}
	exercises := strings.Split(string(page), "\n### ")[1:]
	if len(exercises) == 0 {
		t.Fatal("the page has no exercises")
	}
	for i, exercise := range exercises {
		title, _, _ := strings.Cut(exercise, "\n")
		t.Run(title, func(t *testing.T) {
			if number := fmt.Sprintf("%d. ", i+1); !strings.HasPrefix(title, number) {
				t.Errorf("the exercise begins with %q, want %q", title, number)
			}
			var want []string
			for _, match := range answers.FindAllStringSubmatch(exercise, -1) {
				want = append(want, match[1])
			}
			if len(want) == 0 {
				t.Error("the exercise has no answer")
			}
			var all strings.Builder
			for _, block := range examples.FindAllStringSubmatch(exercise, -1) {
				for command := range strings.Lines(block[1]) {
					words := strings.Fields(command)
					if words[0] != "chorale" {
						t.Fatalf("%q is no command of ours", command)
					}
					out, err := exec.Command("chorale", words[1:]...).CombinedOutput()
					if err != nil {
						t.Fatalf("%s%v: %s", command, err, out)
					}
					if !printsAny(string(out), want) {
						t.Errorf("%sprints none of %q:\n%s", command, want, out)
					}
					all.Write(out)
				}
			}
			for _, answer := range want {
				if !prints(all.String(), answer) {
					t.Errorf("no command prints %q:\n%s", answer, all.String())
				}
			}
		})
	}
}

// printsAny reports whether the output contains one of the texts.
func printsAny(out string, texts []string) bool {
	for _, text := range texts {
		if prints(out, text) {
			return true
		}
	}
	return false
}
