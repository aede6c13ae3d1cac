package launch

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// survive RANK END joins. One rank ends: killed, or with a status. The others wait for its message, and say when they are told that it is lost.
func survive(args []string) error {
	ep, env, err := Join(context.Background())
	if err != nil {
		return err
	}
	defer ep.Close()
	if _, err := agreeOn(ep, 0); err != nil { // all have joined
		return err
	}
	lost, _ := strconv.Atoi(args[0])
	awaitAgreed(ep, jobRanks(env), []int{lost})
	if ep.Rank() == lost {
		fmt.Println("ends", time.Now().UnixMicro())
		end(args[1])
	}
	if err := awaitLoss(ep, lost); err != nil {
		return err
	}
	fmt.Println("hears", time.Now().UnixMicro())
	return nil
}

// outlive RANK… joins, and says so. The ranks do nothing until they are lost. The others wait
// for that, and regroup.
func outlive(args []string) error {
	ctx := context.Background()
	ep, env, err := Join(ctx)
	if err != nil {
		return err
	}
	defer ep.Close()
	if _, err := agreeOn(ep, 0); err != nil {
		return err
	}
	fmt.Println("joined")
	lost := ranksOf(strings.Join(args, ","))
	if slices.Contains(lost, ep.Rank()) {
		select {}
	}
	for _, rank := range lost {
		if err := awaitLoss(ep, rank); err != nil {
			return err
		}
	}
	fmt.Println("hears", time.Now().UnixMicro())
	members := slices.DeleteFunc(jobRanks(env), func(rank int) bool { return slices.Contains(lost, rank) })
	anew, _, err := env.Regroup(ctx, 1, members)
	if err != nil {
		return err
	}
	defer anew.Close()
	if _, err := agreeOn(anew, 0); err != nil {
		return err
	}
	fmt.Println("regrouped", anew.Size())
	return nil
}

// times returns the numbers behind a word at the beginnings of lines.
func times(output, word string) (all []time.Time) {
	for line := range strings.Lines(output) {
		if text, ok := strings.CutPrefix(line, word+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			all = append(all, time.UnixMicro(n))
		}
	}
	return all
}

// continuing is the configuration of a job that goes on without lost ranks.
func continuing(cfg Config, r *result) Config {
	cfg.Continue, cfg.Unlabeled, cfg.Stdout, cfg.Stderr = true, true, &r.out, &r.err
	return cfg
}

func TestTheOthersGoOnWithoutALostRank(t *testing.T) {
	for how, ended := range map[string]string{"killed": `killed by signal 9 \(killed\)`, "7": "exited with status 7"} {
		for _, transport := range []string{"auto", "tcp"} {
			late := []time.Duration{0}
			for runs := 0; len(late) > 0 && runs < 5; runs++ { // a busy machine may not run a rank for a second
				late = hearLate(t, transport, how, ended)
			}
			if len(late) > 0 {
				t.Errorf("%s, %s: in each of 5 jobs, ranks hear of the loss late: after %v", how, transport, late)
			}
		}
	}
}

// hearLate runs a job of which rank 1 is lost, and returns how long ranks take to hear of it
// that take more than a second.
func hearLate(t *testing.T, transport, how, ended string) (late []time.Duration) {
	t.Helper()
	// The others end as soon as they have heard, so that perhaps none is left.
	want := regexp.MustCompile("rank 1 was lost: " + ended + "; (the others go on|no rank is left)\n")
	r := new(result)
	cfg := continuing(config(t, 4, "survive", "1", how), r)
	cfg.Transport = transport
	err := Run(t.Context(), cfg)
	ends, heard := times(r.out.String(), "ends"), times(r.out.String(), "hears")
	if err != nil || len(ends) != 1 || len(heard) != 3 || len(want.FindAllString(r.err.String(), -1)) != 1 {
		t.Errorf("%s, %s: %v, want 3 ranks to hear of it, and %v once\n%s%s", how, transport, err, want, r.out.String(), r.err.String())
		return nil
	}
	for _, at := range heard {
		if took := at.Sub(ends[0]); took > time.Second {
			late = append(late, took)
		}
	}
	return late
}
