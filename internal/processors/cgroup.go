package processors

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// atMost returns n, or the quota of this process's cgroups if that is less. Root
// is the file system. What cannot be read is no quota.
func atMost(n int, root fs.FS) int {
	mounts := parseMounts(read(root, "proc/self/mountinfo"))
	for _, g := range parseCgroups(read(root, "proc/self/cgroup")) {
		for _, m := range mounts {
			if m.version != g.version {
				continue
			}
			for dir := m.dir(g.path); ; dir = path.Dir(dir) {
				n = min(n, quota(root, dir, m.version))
				if dir == m.point || dir == "." {
					break
				}
			}
		}
	}
	return n
}

// unlimited is the quota of a cgroup that has none.
const unlimited = 1<<31 - 1

// quota returns the quota of the cgroup in a directory, in processors.
func quota(root fs.FS, dir string, version int) int {
	if version == 1 {
		return parseQuota(read(root, dir+"/cpu.cfs_quota_us") + " " + read(root, dir+"/cpu.cfs_period_us"))
	}
	return parseQuota(read(root, dir+"/cpu.max"))
}

// parseQuota returns the quota that "QUOTA PERIOD" means, in processors: the time
// that may be used in each period, divided by the period and rounded up. A quota of
// "max" or -1 is none, and so is one that is no number.
func parseQuota(text string) int {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return unlimited
	}
	time, err := strconv.ParseUint(fields[0], 10, 63)
	period, err2 := strconv.ParseUint(fields[1], 10, 63)
	if err != nil || err2 != nil || time == 0 || period == 0 {
		return unlimited
	}
	return int(min((time+period-1)/period, unlimited))
}

// A cgroup is one that holds this process: the one of version 2, or the one of
// version 1 that controls processors.
type cgroup struct {
	version int
	path    string // as the process sees it
}

// parseCgroups reads /proc/self/cgroup, which has lines of the form
// ID:CONTROLLER,…:PATH. Version 2 has ID 0 and no controllers.
func parseCgroups(text string) (groups []cgroup) {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(fields) < 3:
		case fields[0] == "0" && fields[1] == "":
			groups = append(groups, cgroup{2, fields[2]})
		case slices.Contains(strings.Split(fields[1], ","), "cpu"):
			groups = append(groups, cgroup{1, fields[2]})
		}
	}
	return groups
}

// A mount is where cgroups are seen as directories.
type mount struct {
	version int
	root    string // the path of the cgroup whose directory is the mount point
	point   string // below the root of the file system, without a slash in front
}

// parseMounts reads /proc/self/mountinfo, which has lines of the form
//
//	ID PARENT DEVICE ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPEROPTIONS
func parseMounts(text string) (mounts []mount) {
	for line := range strings.Lines(text) {
		front, back, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		of, kind := strings.Split(front, " "), strings.Split(back, " ")
		if len(of) < 6 || len(kind) < 3 {
			continue
		}
		m := mount{root: unescape(of[3]), point: below(unescape(of[4]))}
		switch {
		case kind[0] == "cgroup2":
			m.version = 2
		case kind[0] == "cgroup" && slices.Contains(strings.Split(kind[2], ","), "cpu"):
			m.version = 1
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// dir returns the directory of the cgroup with a path. If the mount shows another
// part of the hierarchy, it is the mount point: in a container, that is the
// container's own cgroup.
func (m mount) dir(cgroup string) string {
	rest, ok := strings.CutPrefix(path.Clean("/"+cgroup), strings.TrimSuffix(path.Clean("/"+m.root), "/"))
	if !ok || rest != "" && rest[0] != '/' {
		return m.point
	}
	return path.Join(m.point, rest)
}

// below returns an absolute path as fs.FS has it.
func below(abs string) string {
	if p := strings.TrimPrefix(path.Clean("/"+abs), "/"); p != "" {
		return p
	}
	return "."
}

// unescape undoes how the kernel writes spaces, tabs, newlines and backslashes: as
// \ and three octal digits.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if len(after) >= 3 {
			if c, err := strconv.ParseUint(after[:3], 8, 8); err == nil {
				b.WriteByte(byte(c))
				s = after[3:]
				continue
			}
		}
		b.WriteByte('\\')
		s = after
	}
}

// read returns the text of a file, or "".
func read(root fs.FS, name string) string {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return string(text)
}
