package command

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/launchertest"
	"github.com/chorale-go/chorale/internal/pagetest"
	"github.com/chorale-go/chorale/launch/join"
)

const jobRanks = 3 // ranks

// A jobLauncher starts ranks of ending.
type jobLauncher struct {
	name    string
	row     string // of the table on the page
	command []string
	env     []string
	again   bool // it takes several interrupts to end
}

// jobLaunchers are the launchers of the table, but for ranks that a user starts.
func jobLaunchers(t *testing.T) []jobLauncher {
	t.Helper()
	if testing.Short() {
		t.Skip("the ranks of many jobs end by themselves, 5 s after one of them: not with -short")
	}
	chorale, err := exec.LookPath("chorale")
	if err != nil {
		t.Fatal(err)
	}
	ssh := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(ssh, []byte("while [ $# -gt 2 ]; do shift; done\nexec sh -c \"$2\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const run = "`chorale run`, with and without `--hosts`"
	all := []jobLauncher{
		{name: "chorale run", row: run, command: []string{chorale, "run", "-n", strconv.Itoa(jobRanks)}},
		{name: "chorale run --hosts", row: run, command: []string{chorale, "run", "--hosts", "a:2,b"}, env: []string{"CHORALE_SSH=sh " + ssh}},
	}
	for name, l := range launchertest.Hydra(t, jobRanks) {
		all = append(all, jobLauncher{name: name, row: "`mpiexec` of Hydra", command: l.Command, env: l.Env})
	}
	mpirun := launchertest.Mpirun(t, jobRanks)
	all = append(all, jobLauncher{name: "mpirun", row: "`mpirun` of Open MPI", command: mpirun.Command, env: mpirun.Env})
	for name, l := range launchertest.Slurm(t, jobRanks) {
		const option = "--kill-on-bad-exit=1"
		all = append(all,
			jobLauncher{name, "`srun` with any `--mpi`", l.Command, l.Env, true},
			jobLauncher{name + " " + option, "the same with `" + option + "`", append(slices.Clone(l.Command), option), l.Env, true})
	}
	return all
}

// A launchedJob is a job of ending.
type launchedJob struct {
	cmd    *exec.Cmd
	mark   string // in the arguments of its processes
	secret string // the directory of the secret, where the launcher has no key store
	out    lockedBuffer
	ended  chan error
}

// start starts the ranks.
func (l jobLauncher) start(t *testing.T, args ...string) *launchedJob {
	t.Helper()
	program, err := exec.LookPath("ending")
	if err != nil {
		t.Fatal(err)
	}
	j := &launchedJob{mark: rand.Text(), secret: t.TempDir(), ended: make(chan error, 1)}
	j.cmd = exec.Command(l.command[0], slices.Concat(l.command[1:], []string{program}, args, []string{j.mark})...)
	j.cmd.Env = append(append(join.WithoutPlace(os.Environ()), l.env...), "XDG_RUNTIME_DIR="+j.secret)
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	j.cmd.WaitDelay = 5 * time.Second
	j.cmd.Stdout, j.cmd.Stderr = &j.out, &j.out
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { j.ended <- j.cmd.Wait() }()
	t.Cleanup(func() {
		j.cmd.Process.Kill()
		for _, pid := range j.ranks() {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return j
}

// wait returns the exit status of the launcher, as a shell has it: 128 and the number of the
// signal that has ended it, if one has.
func (j *launchedJob) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-j.ended:
	case <-time.After(time.Minute):
		t.Fatalf("%q has not ended after a minute:\n%s", j.cmd.Args, &j.out)
	}
	if status := j.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return j.cmd.ProcessState.ExitCode()
}

// interrupt interrupts the launcher when all ranks have begun, as Ctrl-C on a terminal
// does; with again, every 300 ms until it ends. It returns the exit status.
func (j *launchedJob) interrupt(t *testing.T, again bool) int {
	t.Helper()
	j.awaitBegin(t)
	for range 100 {
		syscall.Kill(-j.cmd.Process.Pid, syscall.SIGINT)
		if !again {
			break
		}
		select {
		case err := <-j.ended:
			j.ended <- err
			return j.wait(t)
		case <-time.After(300 * time.Millisecond):
		}
	}
	return j.wait(t)
}

func (j *launchedJob) awaitBegin(t *testing.T) {
	t.Helper()
	eventuallyIn(t, "all ranks have begun", func() (left any) {
		if strings.Count(j.out.String(), "begun") < jobRanks {
			return &j.out
		}
		return nil
	})
}

// eventuallyIn polls until nothing is left, and fails if there is something after 30 s.
func eventuallyIn(t *testing.T, what string, look func() (left any)) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		left := look()
		if left == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s, it is not so that %s: %v", what, left)
		}
	}
}

// ranks returns the processes of the ranks.
func (j *launchedJob) ranks() (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(j.mark)) && strings.HasSuffix(strings.Split(string(line), "\x00")[0], "ending") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file))) // digits
			pids = append(pids, pid)
		}
	}
	return pids
}

// parent returns the parent of a rank: the process of the launcher on its host.
func (j *launchedJob) parent(t *testing.T) int {
	t.Helper()
	m := regexp.MustCompile(`begun (\d+)`).FindStringSubmatch(j.out.String())
	pid, err := strconv.Atoi(m[1])
	if err != nil || pid <= 1 {
		t.Fatalf("the parent of a rank is process %q", m)
	}
	return pid
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// statuses returns the numbers of a cell, as in "7 or 143".
func statuses(cell string) (all []int) {
	for _, number := range regexp.MustCompile(`\d+`).FindAllString(cell, -1) {
		n, _ := strconv.Atoi(number) // digits
		all = append(all, n)
	}
	return all
}

// The columns of the table of the page, behind the launcher, and what ending is told.
var endings = []string{1: "killed", 2: "7", 3: "error"}

const (
	interrupted = 4 // the column of Ctrl-C
	computing   = 5 // that says who ends ranks that compute
)

// endThemselves is what the page says of ranks that no launcher ends, and endSaid what
// rank 0 then says. Other ranks say so too when their launcher has killed rank 0.
const endThemselves, endSaid = "they end themselves", "chorale: rank 0: rank 1 is lost: "

// srunSaid is what srun says of rank 0 then. It may lose the last line of a task that ends soon
// before the whole step.
const srunSaid = "task 0: Exited with exit code 1\n"

func TestThePageSaysHowJobsEnd(t *testing.T) {
	rows := make(map[string][]string)
	for _, row := range pagetest.Rows(t, "cluster.md", "When a rank fails") {
		rows[row[0]] = row
	}
	launchers := jobLaunchers(t)
	testByHand(t, rows["by hand"])
	delete(rows, "by hand")
	tested := make(map[string]bool)
	for _, l := range launchers {
		row, found := rows[l.row]
		if !found {
			t.Fatalf("the table has no row %q", l.row)
		}
		tested[l.row] = true
		t.Run(l.name, func(t *testing.T) {
			t.Parallel() // ranks that end themselves take their time
			testRow(t, l, row)
		})
	}
	for row := range rows {
		if !tested[row] {
			t.Errorf("no test for row %q", row)
		}
	}
}

func testRow(t *testing.T, l jobLauncher, row []string) {
	check := func(what string, j *launchedJob, status int, cell string) {
		t.Helper()
		if want := statuses(cell); !slices.Contains(want, status) {
			t.Errorf("%s: status %d, and the page says %q:\n%s", what, status, cell, &j.out)
		}
	}
	for column := 1; column < interrupted; column++ {
		for _, rank := range []string{"0", "1"} {
			j := l.start(t, endings[column], rank, "wait")
			check("rank "+rank+": "+endings[column], j, j.wait(t), row[column])
		}
	}
	j := l.start(t, "none", "-1", "wait")
	check("Ctrl-C", j, j.interrupt(t, l.again), row[interrupted])

	j = l.start(t, "killed", "1", "compute")
	check("the others compute", j, j.wait(t), row[1])
	if by, said := strings.Contains(row[computing], endThemselves), strings.Contains(j.out.String(), endSaid) || strings.Contains(j.out.String(), srunSaid); by != said {
		t.Errorf("ranks that compute end themselves: %v, and the page says %q:\n%s", said, row[computing], &j.out)
	}
	j = l.start(t, "error", "1", "compute") // rank 1 has left, so that some launchers see nothing to end
	if status := j.wait(t); status == 0 {
		t.Errorf("rank 1 returns an error, and the others compute: status 0:\n%s", &j.out)
	}
}

// testByHand tests the row of ranks that a user starts. The statuses are those of the rank
// itself, and 1 of the others.
func testByHand(t *testing.T, row []string) {
	if len(row) <= computing || !strings.Contains(row[computing], endThemselves) {
		t.Fatalf("the row %q: want that ranks that compute end themselves", row)
	}
	for column := 1; column <= interrupted; column++ {
		for _, others := range []string{"wait", "compute"} {
			if column == interrupted && others == "compute" {
				continue
			}
			at, secret := "CHORALE_RENDEZVOUS=127.0.0.1:"+freePort(t), t.TempDir()
			var jobs []*launchedJob
			for rank := range jobRanks {
				l := jobLauncher{command: []string{"env"}, env: []string{
					at, fmt.Sprintf("CHORALE_RANK=%d", rank), fmt.Sprintf("CHORALE_SIZE=%d", jobRanks), "CHORALE_TOKEN=" + secret,
				}}
				how, victim := "none", "-1"
				if column < interrupted {
					how, victim = endings[column], "1"
				}
				jobs = append(jobs, l.start(t, how, victim, others))
			}
			for _, j := range jobs {
				if column == interrupted {
					eventuallyIn(t, "the rank has begun", func() any {
						if !strings.Contains(j.out.String(), "begun") {
							return &j.out
						}
						return nil
					})
				}
			}
			for _, j := range jobs {
				if column == interrupted {
					syscall.Kill(j.cmd.Process.Pid, syscall.SIGINT)
				}
			}
			first := false // a rank has ended with the first status of the column
			for rank, j := range jobs {
				j.wait(t)
				want := []int{1}
				if column == interrupted || rank == 1 {
					want = statuses(row[column])
				}
				status := shellStatus(j.cmd.ProcessState)
				first = first || status == statuses(row[column])[0]
				if !slices.Contains(want, status) {
					t.Errorf("by hand, %s, the others %s: rank %d ends with status %d, want one of %d:\n%s", row[column], others, rank, status, want, &j.out)
				}
			}
			if !first { // whoever is interrupted before it has heard of another one
				t.Errorf("by hand, the others %s: no rank ends with the first status of %q", others, row[column])
			}
		}
	}
}

// shellStatus returns the status of a process as a shell has it.
func shellStatus(state *os.ProcessState) int {
	if ws := state.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// A job ends with its launcher, even with one that has no time to say so, and nothing of
// it remains. Its ranks compute: they make no call that would fail.
func TestNothingOfAJobRemainsWhenItsLauncherIsKilled(t *testing.T) {
	for _, l := range jobLaunchers(t) {
		t.Run(l.name, func(t *testing.T) {
			testKilled(t, l, func(j *launchedJob) int { return j.cmd.Process.Pid })
		})
	}
}

// What a launcher starts on each host is killed. Without PMI nothing connects a rank to its
// slurmstepd: the page says so.
func TestNothingOfAJobRemainsWhenAProcessOfItsLauncherIsKilled(t *testing.T) {
	for _, l := range jobLaunchers(t) {
		if strings.Contains(l.name, "--kill-on-bad-exit") || l.name == "srun --mpi=none" {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			if strings.HasPrefix(l.name, "srun") {
				own := launchertest.Slurm(t, jobRanks)[l.name] // its nodes are of no use for a while
				l.command, l.env = own.Command, own.Env
			}
			testKilled(t, l, func(j *launchedJob) int { return j.parent(t) })
		})
	}
}

func testKilled(t *testing.T, l jobLauncher, victim func(*launchedJob) int) {
	t.Helper()
	tmp := t.TempDir()
	if strings.HasPrefix(l.name, "chorale") { // the others make no files for it
		l.env = append(slices.Clone(l.env), "TMPDIR="+tmp)
	}
	j := l.start(t, "none", "-1", "compute")
	j.awaitBegin(t)
	syscall.Kill(victim(j), syscall.SIGKILL)
	eventuallyIn(t, "no rank runs", func() any {
		if left := j.ranks(); len(left) > 0 {
			return fmt.Sprintf("%v\n%s", left, &j.out)
		}
		return nil
	})
	j.cmd.Process.Kill() // srun goes on if a slurmstepd was killed
	j.wait(t)
	for _, pattern := range []string{filepath.Join(j.secret, "chorale", "*"), filepath.Join(tmp, "chorale-*")} {
		eventuallyIn(t, "no file of the job is there", func() any {
			if left, _ := filepath.Glob(pattern); left != nil {
				return left
			}
			return nil
		})
	}
}
