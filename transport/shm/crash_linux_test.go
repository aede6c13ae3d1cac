package shm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chorale-go/chorale/internal/testenv"
	"github.com/chorale-go/chorale/transport"
	"github.com/chorale-go/chorale/transport/internal/cluster"
	"github.com/chorale-go/chorale/transport/transporttest"
)

// lostTime is within which every other rank names one that was killed. The product
// promises that; it is no speed that would be measured here. The race detector may
// take as long by itself. So may a machine that runs other tests beside these ranks,
// which outnumber its processors: a kill that is noticed too late is repeated.
const (
	lostTime = time.Second
	attempts = 3
)

// TestARankKilledAtAnyMomentIsLostToAllOthers kills one of four ranks while all
// play something, 200 times. Only the kernel tells the others.
func TestARankKilledAtAnyMomentIsLostToAllOthers(t *testing.T) {
	kills := 200
	if testing.Short() {
		kills = 20
	}
	const jobs = 6 // at a time
	for first := range jobs {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			for i := first; i < kills && !t.Failed(); i += jobs {
				took := kill(t, i)
				for n := 1; !transporttest.UnderRace && took > lostTime && n < attempts && !t.Failed(); n++ {
					took = kill(t, i)
				}
				if took > lostTime && !transporttest.UnderRace {
					t.Errorf("kill %d: the last of the other ranks says so after %v, %d times in a row, want %v", i, took, attempts, lostTime)
				}
			}
		})
	}
}

// kill starts a job, kills a rank of it, and looks what the others say. It returns
// after which time the last of them has said so.
func kill(t *testing.T, i int) time.Duration {
	patterns := []string{"swap 8", "direct 8", "swap 100000", "direct 100000", "bcast 300000", "swap 5000000", "direct 0", "wait 0"}
	var what string
	var bytes int
	fmt.Sscan(patterns[i%len(patterns)], &what, &bytes)
	random := rand.New(rand.NewPCG(uint64(i), 1))
	most := 8 * time.Millisecond
	if i/len(patterns)%4 == 1 {
		most = 400 * time.Millisecond // those that wait sleep by then
	}
	after := time.Duration(random.Int64N(int64(most)))
	const size = 4
	victim := 1 + random.IntN(size-1)
	name := fmt.Sprintf("kill %d, of rank %d after %v of %s with %d bytes", i, victim, after, what, bytes)

	job := startCluster(t, size, i%3 == 0)
	defer job.End()
	job.StartOthers(what, bytes, 1<<30)
	killed := make(chan time.Time, 1)
	time.AfterFunc(after, func() {
		killed <- time.Now()
		job.Process(victim).Kill()
	})
	var err error
	if what == "wait" { // for rank 0, which waits for the victim
		err = job.Await(victim)
	} else {
		err = job.Run(what, bytes, 1<<30)
	}
	// Every rank has lost the victim itself, or heard of it from one that has.
	lost := fmt.Sprintf("rank %d: %v", victim, transport.ErrLost)
	if err == nil || !strings.Contains(err.Error(), lost) {
		t.Errorf("%s: rank 0 says %q", name, err)
	}
	for rank := 1; rank < size; rank++ {
		if says := job.Reply(rank); rank != victim && !strings.Contains(says, lost) {
			t.Errorf("%s: rank %d says %q", name, rank, says)
		}
	}
	return time.Since(<-killed)
}

func TestAStoppedRankIsNotLost(t *testing.T) {
	job := processes(t, 2)
	job.RunAll(t, "swap", 8, 10)
	stopped := job.Process(1)
	if err := cluster.Stop(stopped); err != nil {
		t.Fatal(err)
	}
	defer stopped.Signal(syscall.SIGCONT)
	time.AfterFunc(4*livenessInterval, func() { stopped.Signal(syscall.SIGCONT) })
	job.RunAll(t, "swap", 8, 10)
}

func TestNothingIsLeftInTheFileSystem(t *testing.T) {
	before := names(t)
	job := processes(t, 3)
	job.RunAll(t, "direct", 8, 1)
	if during := names(t); during != before {
		t.Errorf("while the job runs, /dev/shm holds %s, before %s", during, before)
	}
}

func names(t *testing.T) string {
	entries, err := os.ReadDir("/dev/shm")
	if err != nil {
		testenv.Skip(t, "this system has no /dev/shm to look at: %v", err)
	}
	var all []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "chorale") {
			all = append(all, e.Name())
		}
	}
	return fmt.Sprint(all)
}
