/* The loop of package internal/bench, whose comment defines samples, their number, and the
 * buffers, with the same parts under the same names. The programs that measure MPI and
 * Gloo include it. They define synchronize, slowest_of and fail.
 *
 * Messages of HUGE_FROM bytes or more are measured twice: in buffers on pages of the
 * system's size, and in buffers on huge pages, whose rows say so. The two share the
 * time of a row. */
#include <dlfcn.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#ifdef __cplusplus
#define EXPORTED extern "C"
#define NOTHROW noexcept
#else
#define EXPORTED
#define NOTHROW
#endif

enum { CHECK_INTERVAL = 5, MIN_SAMPLES = 20, MAX_SAMPLES = 1000, MAX_CALLS = 1 << 20, MAX_ROOTS = 16, PAGE = 4096, HUGE_PAGE = 2 << 20, HUGE_FROM = 1 << 16 };
static const double batch_time = 1000; /* µs */
static const double precision = 0.01;

static int rank, size;
static char *in, *out; /* of the cells that are measured now */

/* A kind of buffers. */
struct buffers {
	const char *suffix; /* of a row's algorithm */
	char *in, *out;
};

static double now(void) { /* µs */
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static int root, roots; /* the root rotates over ranks 0 to roots-1 */
static int rotating;

static int next_root(void) {
	int now = root;
	if (roots > 1)
		root = (root + 1) % roots;
	return now;
}

/* A call whose message has this many bytes. */
typedef void call(int bytes);

static void synchronize(void); /* a barrier of all ranks */
static void slowest_of(double *mine, double *slowest, int n); /* the greatest of all ranks, for each number */
static void fail(void); /* ends all ranks */

static long context_switches(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_nvcsw + u.ru_nivcsw;
}

static long switches; /* of this process, in the batches of the last samples */

static double batch(call *run, int bytes, int n) {
	synchronize();
	long before = context_switches();
	double begin = now();
	for (int i = 0; i < n; i++)
		run(bytes);
	double took = now() - begin;
	switches += context_switches() - before;
	return took;
}

static double mine[CHECK_INTERVAL + 1], slowest[CHECK_INTERVAL + 1];

/* Runs batches, leaves the time of each on the slowest rank in slowest, and
 * returns the time since start. */
static double run_batches(call *run, int bytes, int n, int batches, double start) {
	for (int i = 0; i < batches; i++)
		mine[i] = batch(run, bytes, n);
	mine[CHECK_INTERVAL] = now() - start;
	slowest_of(mine, slowest, CHECK_INTERVAL + 1);
	return slowest[CHECK_INTERVAL];
}

/* Returns the number of calls in a batch. */
static int warm_up(call *run, int bytes, double limit) {
	double start = now();
	for (int n = 1;;) {
		double elapsed = run_batches(run, bytes, n, 3, start);
		if (fmin(fmin(slowest[0], slowest[1]), slowest[2]) < batch_time && n < MAX_CALLS)
			n *= 2;
		else if (elapsed >= limit)
			return n;
	}
}

static double samples[MAX_SAMPLES];

static int ascending(const void *a, const void *b) {
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median_of(const double *s, int n) { return (s[(n - 1) / 2] + s[n / 2]) / 2; }

/* Returns whether the median is within precision of the true one, and sorts the
 * samples. */
static int stable(int n) {
	qsort(samples, n, sizeof *samples, ascending);
	if (n < MIN_SAMPLES)
		return 0;
	double spread = 0.98 * sqrt(n), m = median_of(samples, n);
	double lo = samples[(int)(n / 2.0 - spread)], hi = samples[(int)ceil(n / 2.0 + spread)];
	return m - lo <= precision * m && hi - m <= precision * m;
}

/* Takes samples of the time of a call, and returns their number. */
static int sample(call *run, int bytes, double warm, double limit, int *n) {
	*n = warm_up(run, bytes, warm);
	int have = 0;
	switches = 0;
	double elapsed, start = now();
	do {
		elapsed = run_batches(run, bytes, *n, CHECK_INTERVAL, start);
		for (int i = 0; i < CHECK_INTERVAL; i++)
			samples[have++] = slowest[i] / *n;
	} while (!stable(have) && elapsed < limit && have < MAX_SAMPLES);
	return have;
}

/* Returns memory that is aligned to pages of a size and has been written to. If huge,
 * it is whole pages, and the kernel is advised to make them huge ones. */
static char *reserve(size_t n, size_t page, int huge) {
	void *p = NULL;
	size_t all = (n + 2 * page - 1) / page * page;
	if (posix_memalign(&p, page, all)) {
		fprintf(stderr, "no memory for %zu bytes\n", n);
		fail();
	}
	if (huge && madvise(p, all, MADV_HUGEPAGE))
		perror("huge pages");
	memset(p, 1, all);
	return (char *)p;
}

/* Returns whether a list, as in "a,b", contains the word. */
static int listed(const char *list, const char *word) {
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == 0))
			return 1;
	return 0;
}

/* A program whose environment has CONGESTION gives its TCP sockets, those of its library too,
 * that congestion control: this socket is called instead of the C library's. A socket that
 * is accepted has the control of the one that listens. */
static const char *congestion(void) {
	const char *name = getenv("CONGESTION");
	return name && *name ? name : NULL;
}

EXPORTED int socket(int domain, int type, int protocol) NOTHROW {
	typedef int function(int, int, int);
	static function *next;
	if (!next)
		next = (function *)dlsym(RTLD_NEXT, "socket");
	int fd = next(domain, type, protocol);
	if (fd >= 0 && congestion() && (domain == AF_INET || domain == AF_INET6) && (type & 0xf) == SOCK_STREAM)
		setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion(), strlen(congestion()));
	return fd;
}

/* Fails if a TCP socket has another congestion control than the one that was asked for. */
static void check_congestion(void) {
	for (int fd = 0; congestion() && fd < 1024; fd++) {
		char name[16] = "";
		socklen_t length = sizeof name - 1;
		if (!getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) && strcmp(name, congestion())) {
			fprintf(stderr, "a socket has the congestion control %s: want %s\n", name, congestion());
			fail();
		}
	}
}
