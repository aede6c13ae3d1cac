package processors

import (
	"fmt"
	"math/big"
	"path"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
)

// tree is a file system with these files.
func tree(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

const (
	v2        = "36 25 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
	v1        = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	container = "32 31 0:29 /docker/c0ffee /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
)

func TestTheLeastQuotaOfAllCgroupsCounts(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  int // of 8 processors
	}{
		"no cgroups": {nil, 8},
		"no quota":   {map[string]string{"proc/self/cgroup": "0::/user\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/user/cpu.max": "max 100000\n"}, 8},
		"version 2":  {map[string]string{"proc/self/cgroup": "0::/user\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/user/cpu.max": "200000 100000\n"}, 2},
		"version 2, in its own namespace": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/cpu.max": "150000 50000\n",
		}, 3},
		"version 2, the parent's": {map[string]string{
			"proc/self/cgroup": "0::/pod/box/app\n", "proc/self/mountinfo": v2,
			"sys/fs/cgroup/pod/cpu.max":         "300000 100000\n",
			"sys/fs/cgroup/pod/box/cpu.max":     "max 100000\n",
			"sys/fs/cgroup/pod/box/app/cpu.max": "700000 100000\n",
			"sys/fs/cgroup/other/cpu.max":       "100000 100000\n",
		}, 3},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpuset:/slow\n4:cpu,cpuacct:/job\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "400000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/cpuset/slow/cpu.cfs_quota_us":      "100000\n",
			"sys/fs/cgroup/cpuset/slow/cpu.cfs_period_us":     "100000\n",
		}, 4},
		"version 1, without a quota": {map[string]string{
			"proc/self/cgroup": "4:cpu,cpuacct:/job\n", "proc/self/mountinfo": v1,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "-1\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
		}, 8},
		"version 1, in a container that sees the host's paths": {map[string]string{
			"proc/self/cgroup": "4:cpu:/docker/c0ffee/app\n", "proc/self/mountinfo": container,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":      "500000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us":     "100000\n",
			"sys/fs/cgroup/cpu/app/cpu.cfs_quota_us":  "600000\n",
			"sys/fs/cgroup/cpu/app/cpu.cfs_period_us": "100000\n",
		}, 5},
		"version 1, in a container whose cgroup is elsewhere": {map[string]string{
			"proc/self/cgroup": "4:cpu:/docker/c0ffeeine\n", "proc/self/mountinfo": container,
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "500000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, 5},
		"both versions": {map[string]string{
			"proc/self/cgroup": "4:cpu:/job\n0::/job\n", "proc/self/mountinfo": v1 + v2,
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us":  "600000\n",
			"sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
			"sys/fs/cgroup/job/cpu.max":                       "400000 100000\n",
		}, 4},
		"a mount point with a space": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": strings.Replace(v2, "/sys/fs/cgroup", `/a\040b\134c`, 1),
			`a b\c/cpu.max`: "200000 100000\n",
		}, 2},
		"more than the processors": {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/cpu.max": "6400000 100000\n"}, 8},
		"less than one processor":  {map[string]string{"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": v2, "sys/fs/cgroup/cpu.max": "1000 100000\n"}, 1},
	} {
		if got := atMost(8, tree(test.files)); got != test.want {
			t.Errorf("%s: %d processors, want %d", name, got, test.want)
		}
	}
}

func TestAProcessHasAtLeastOneProcessorAndNoMoreThanTheSystem(t *testing.T) {
	if n := Available(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("%d available of %d", n, runtime.NumCPU())
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if n := Parallel(); n != 1 {
		t.Errorf("%d goroutines in parallel under GOMAXPROCS=1", n)
	}
}

func FuzzCgroup(f *testing.F) {
	f.Add("4:cpu:/docker/c0ffee/app\n", container, "/docker/c0ffee/app", "/docker", int64(150000), int64(100000))
	f.Add("0::/\n", v2, "/", "/", int64(-1), int64(100000))
	f.Add("", `- \04 - cgroup2`, "/../x", `/a\040b`, int64(1), int64(1)<<62)
	f.Fuzz(func(t *testing.T, cgroups, mountinfo, group, root string, time, period int64) {
		if len(cgroups)+len(mountinfo)+len(group) > 1<<10 {
			return // MapFS is slow
		}
		// Whatever the files say, there is a number.
		text := fmt.Sprintf("%d %d\n", time, period)
		files := map[string]string{"proc/self/cgroup": cgroups, "proc/self/mountinfo": mountinfo}
		mounts := parseMounts(mountinfo)
		for _, m := range mounts {
			files[path.Join(m.point, "cpu.max")] = text
		}
		if n := atMost(8, tree(files)); n < 1 || n > 8 {
			t.Fatalf("%d of 8 processors", n)
		}

		// A quota is found in the directory of its cgroup, below the mount point.
		if strings.ContainsAny(group+root, "\n") {
			return
		}
		group, root = path.Clean("/"+group), path.Clean("/"+root)
		inside := root == "/" || group == root || strings.HasPrefix(group, root+"/")
		dir := "cg"
		if inside {
			dir = path.Join("cg", strings.TrimPrefix(group, root))
		}
		escaped := strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`).Replace(root)
		got := atMost(8, tree(map[string]string{
			"proc/self/cgroup":    "0::" + group + "\n",
			"proc/self/mountinfo": "1 1 0:1 " + escaped + " /cg rw - cgroup2 cgroup2 rw\n",
			dir + "/cpu.max":      text,
		}))
		if want := ceil(8, time, period); got != want && validPath(dir) {
			t.Fatalf("%q of %q holds %q: %d of 8 processors, want %d", dir, root, text, got, want)
		}
	})
}

// validPath reports whether fs.FS allows a path.
func validPath(name string) bool {
	_, err := tree(map[string]string{name: ""}).Open(name)
	return err == nil
}

// ceil returns time/period rounded up, n at most, or n if the two are no quota.
func ceil(n int, time, period int64) int {
	if time <= 0 || period <= 0 {
		return n
	}
	q, r := new(big.Int).DivMod(big.NewInt(time), big.NewInt(period), new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if q.Cmp(big.NewInt(int64(n))) > 0 {
		return n
	}
	return int(q.Int64())
}
