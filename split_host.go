package chorale

import (
	"context"
	"fmt"
	"sync"

	"github.com/chorale-go/chorale/algo"
)

// SplitHost creates the communicator of the ranks that share this rank's host, ordered
// by rank. All ranks call it. If it is not known which ranks share a host, all do. See
// [Comm.Split] for its errors.
//
// With a communicator of one rank per host, made by Split, a program does in two steps
// what is cheap within a host and dear between hosts:
//
//	host, err := c.SplitHost(ctx)
//	leaders, err := c.Split(ctx, min(host.Rank(), 1), c.Rank())
//
// The collectives do so by themselves.
func (c *Comm) SplitHost(ctx context.Context) (*Comm, error) {
	if c == nil {
		return nil, c.unusable("split")
	}
	color := 0
	if all := c.job.config.Hosts; c.rank < len(all) {
		for all[c.jobRank(color)] != all[c.jobRank(c.rank)] { // the lowest rank of the host
			color++
		}
	}
	return c.Split(ctx, color, c.rank)
}

// A placement is what the selection needs to know of the hosts of a group.
type placement struct {
	once  sync.Once
	count int    // of hosts; 1 if they are unknown
	most  int    // the most ranks on a host
	text  string // as in selection.Query
	err   error
}

// placement returns that of the communicator's ranks.
func (c *Comm) placement() *placement {
	p := &c.identity.placement
	p.once.Do(func() {
		all := c.job.config.Hosts
		if size := c.job.endpoint.Size(); len(all) != 0 && len(all) != size {
			p.err = fmt.Errorf("CommConfig.Hosts has %d numbers: want %d, one per rank", len(all), size)
			return
		}
		p.set(&c.group, all)
	})
	return p
}

// set computes the placement of a group. Element r of the hosts, if there are any, is
// the host of the job's rank r.
func (p *placement) set(g *group, hosts []int) {
	ranks := make(map[int]int) // by host
	list := make([]int, g.size)
	for rank := range list {
		if len(hosts) > 0 {
			list[rank] = hosts[g.jobRank(rank)]
		}
		ranks[list[rank]]++
		p.most = max(p.most, ranks[list[rank]])
	}
	p.count = len(ranks)
	if p.count > 1 && p.most > 1 {
		p.text = algo.FormatHosts(list)
	}
}
