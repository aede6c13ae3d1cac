package slurmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A test that fails leaves its jobs behind.
func TestNothingOutlivesTheTest(t *testing.T) {
	var conf string
	var task *exec.Cmd
	t.Run("a test with a job and a process of a job", func(t *testing.T) {
		env := append(os.Environ(), Start(t)...)
		conf = env[len(env)-1]
		job := exec.Command("sbatch", "-N3", "-n3", "-o", os.DevNull, "--wrap", "srun --mpi=pmix sleep 600")
		job.Env = env
		if out, err := job.CombinedOutput(); err != nil {
			t.Fatalf("sbatch: %v\n%s", err, out)
		}
		task = exec.Command("sleep", "600") // as a step that Slurm has forgotten
		task.Env = env
		if err := task.Start(); err != nil {
			t.Fatal(err)
		}
	})
	if task == nil {
		return // it was skipped, or has failed
	}
	task.Wait() // until it is killed
	s := &cluster{t: t, dir: filepath.Dir(conf[len("SLURM_CONF="):])}
	s.await("no process is left", func() bool { return len(s.rest()) == 0 })
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Error(err)
	}
}
