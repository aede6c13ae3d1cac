package launch

import "slices"

// handOnRecords hands on what ranks have recorded of their calls, when the job is over.
func (j *job) handOnRecords() {
	if j.groups == nil {
		return
	}
	for _, o := range slices.Backward(j.groups.list()) {
		handOn(j.cfg.Profile, o.server.Profiles())
		handOn(j.cfg.Trace, o.server.Traces())
	}
}

func handOn(to func(record []byte), records [][]byte) {
	for _, record := range records {
		if to != nil && record != nil {
			to(record)
		}
	}
}
