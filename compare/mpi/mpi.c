/* Measures MPI's collectives, and patterns of messages, with the loop of package internal/bench, whose comment
 * defines samples, their number, and the buffers. This file has the same parts
 * under the same names, and prints the same rows.
 *
 * usage: mpi NAME TRANSPORT ROOT MILLISECONDS SIZE,... COLLECTIVE,...
 *
 * NAME and TRANSPORT are for the rows. ROOT -1 is a rotating root. Rank 0 prints each
 * row as a line of JSON as soon as it is measured.
 *
 * Messages of HUGE_FROM bytes or more are measured twice: in buffers on pages of the
 * system's size, and in buffers on huge pages, whose rows say so. The two share the
 * time of a row. */
#define _GNU_SOURCE
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

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

static MPI_Comm comm; /* of the collectives */
static int comm_rank, comm_size;
static MPI_Op op; /* of the reductions */

static void do_bcast(int n) { MPI_Bcast(out, n, MPI_BYTE, next_root(), comm); }
static void do_reduce(int n) { MPI_Reduce(in, out, n / 4, MPI_FLOAT, op, next_root(), comm); }
static void do_scatter(int n) { MPI_Scatter(in, n, MPI_BYTE, out, n, MPI_BYTE, next_root(), comm); }
static void do_gather(int n) { MPI_Gather(in, n, MPI_BYTE, out, n, MPI_BYTE, next_root(), comm); }
static void do_allgather(int n) { MPI_Allgather(in, n, MPI_BYTE, out, n, MPI_BYTE, comm); }
static void do_allreduce(int n) { MPI_Allreduce(in, out, n / 4, MPI_FLOAT, op, comm); }
static void do_alltoall(int n) { MPI_Alltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, comm); }
static void do_scan(int n) { MPI_Scan(in, out, n / 4, MPI_FLOAT, op, comm); }
static void do_exscan(int n) { MPI_Exscan(in, out, n / 4, MPI_FLOAT, op, comm); }
static void do_barrier(int n) { (void)n; MPI_Barrier(comm); }

static void do_reduce_scatter_block(int n) {
	MPI_Reduce_scatter_block(in, out, n / 4, MPI_FLOAT, op, comm);
}

/* The same by the call that takes a length for each rank. */
static int *counts;
static void do_reduce_scatter(int n) {
	for (int i = 0; i < comm_size; i++)
		counts[i] = n / 4;
	MPI_Reduce_scatter(in, out, counts, MPI_FLOAT, op, comm);
}

static void do_shift(int n) {
	MPI_Sendrecv(in, n, MPI_BYTE, (comm_rank + 1) % comm_size, 0, out, n, MPI_BYTE, (comm_rank + comm_size - 1) % comm_size, 0,
		     comm, MPI_STATUS_IGNORE);
}

/* Patterns of messages: file pattern.go of package internal/bench has the same. */

enum { WINDOW = 16 };

static MPI_Request pending[2 * WINDOW];

static void do_pingpong(int n) {
	int peer = rank ^ 1;
	if (peer >= size)
		return;
	if (rank < peer)
		MPI_Send(in, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
	MPI_Recv(out, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank > peer)
		MPI_Send(in, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static void do_exchange(int n) {
	int peer = rank ^ 1;
	if (peer < size)
		MPI_Sendrecv(in, n, MPI_BYTE, peer, 0, out, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void do_rate(int n) {
	int peer = rank ^ 1;
	if (peer >= size)
		return;
	for (int i = 0; i < WINDOW; i++) {
		if (rank < peer)
			MPI_Isend(in, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &pending[i]);
		else
			MPI_Irecv(out + (size_t)i * n, n, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &pending[i]);
	}
	MPI_Waitall(WINDOW, pending, MPI_STATUSES_IGNORE);
	if (rank < peer)
		MPI_Recv(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(NULL, 0, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void do_halo(int n) {
	int rows = 1, have = 0;
	for (int r = 1; r * r <= size; r++)
		if (size % r == 0)
			rows = r;
	int columns = size / rows, row = rank / columns, column = rank % columns;
	int neighbors[4] = {
		(row + rows - 1) % rows * columns + column,
		(row + 1) % rows * columns + column,
		row * columns + (column + columns - 1) % columns,
		row * columns + (column + 1) % columns,
	};
	for (int i = 0; i < 4; i++)
		if (neighbors[i] != rank)
			MPI_Irecv(out + (size_t)i * n, n, MPI_BYTE, neighbors[i], i ^ 1, MPI_COMM_WORLD, &pending[have++]);
	for (int i = 0; i < 4; i++)
		if (neighbors[i] != rank)
			MPI_Isend(in + (size_t)i * n, n, MPI_BYTE, neighbors[i], i, MPI_COMM_WORLD, &pending[have++]);
	MPI_Waitall(have, pending, MPI_STATUSES_IGNORE);
}

static void do_split(int n) {
	(void)n;
	MPI_Comm half;
	MPI_Comm_split(MPI_COMM_WORLD, 2 * rank / size, rank, &half);
	MPI_Comm_free(&half);
}

#include "forms.h"

static const struct {
	const char *collective, *function;
	call *run;
} calls[] = {
	{"bcast", "MPI_Bcast", do_bcast},
	{"reduce", "MPI_Reduce", do_reduce},
	{"scatter", "MPI_Scatter", do_scatter},
	{"gather", "MPI_Gather", do_gather},
	{"allgather", "MPI_Allgather", do_allgather},
	{"reduce-scatter", "MPI_Reduce_scatter_block", do_reduce_scatter_block},
	{"reduce-scatter", "MPI_Reduce_scatter", do_reduce_scatter},
	{"allreduce", "MPI_Allreduce", do_allreduce},
	{"alltoall", "MPI_Alltoall", do_alltoall},
	{"scan", "MPI_Scan", do_scan},
	{"exscan", "MPI_Exscan", do_exscan},
	{"barrier", "MPI_Barrier", do_barrier},
	{"shift", "MPI_Sendrecv", do_shift},
	{"pingpong", "MPI_Send MPI_Recv", do_pingpong},
	{"exchange", "MPI_Sendrecv", do_exchange},
	{"rate", "MPI_Isend MPI_Irecv", do_rate},
	{"halo", "MPI_Isend MPI_Irecv", do_halo},
	{"split", "MPI_Comm_split MPI_Comm_free", do_split},
};

static long context_switches(void) {
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	return u.ru_nvcsw + u.ru_nivcsw;
}

static long switches; /* of this process, in batches */

static double batch(call *run, int bytes, int n) {
	MPI_Barrier(MPI_COMM_WORLD);
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
	MPI_Allreduce(mine, slowest, CHECK_INTERVAL + 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
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

/* Measures a call, and prints its row. */
static void measure(const char *collective, const char *function, call *run, int bytes, const char *name, const char *transport, struct buffers b, double warm, double limit) {
	double mean = 0, hidden = -1, alone = 0, computing = 0;
	int n;
	in = b.in;
	out = b.out;
	prepare_form(bytes);
	for (int i = 0; i < roots; i++)
		run(bytes);
	if (run == do_overlap) { /* measureOverlap of package bench has the same */
		warm /= 3;
		limit /= 3;
		alone = median_of(samples, sample(do_nonblocking, bytes, warm, limit, &n));
		computing = median_of(samples, sample(do_compute, bytes, warm, limit, &n));
	}
	int have = sample(run, bytes, warm, limit, &n);
	free_form();
	if (run == do_overlap)
		hidden = fmin(1, fmax(0, 1 - (median_of(samples, have) - computing) / alone));
	long all = 0;
	MPI_Reduce(&switches, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank > 0)
		return;
	for (int i = 0; i < have; i++)
		mean += samples[i] / have;
	printf("{\"collective\":\"%s\",\"algorithm\":\"%s %s%s\",\"transport\":\"%s\",\"n\":%d,\"bytes\":%d,"
	       "\"iterations\":%d,\"min\":%.6g,\"median\":%.6g,\"p99\":%.6g,\"mean\":%.6g,\"switches\":%.4g",
	       collective, name, function, b.suffix, transport, size, bytes, n * have,
	       samples[0], median_of(samples, have), samples[(int)ceil(0.99 * have) - 1], mean, (double)all / ((double)n * have));
	if (hidden >= 0)
		printf(",\"overlap\":%.3g", hidden);
	puts("}");
	fflush(stdout);
}

/* Returns memory that is aligned to pages of a size and has been written to. If huge,
 * it is whole pages, and the kernel is advised to make them huge ones. */
static char *reserve(size_t n, size_t page, int huge) {
	void *p = NULL;
	size_t all = (n + 2 * page - 1) / page * page;
	if (posix_memalign(&p, page, all)) {
		fprintf(stderr, "mpi: no memory for %zu bytes\n", n);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (huge && madvise(p, all, MADV_HUGEPAGE))
		perror("mpi: huge pages");
	memset(p, 1, all);
	return p;
}

/* Returns whether a list, as in "a,b", contains the word. */
static int listed(const char *list, const char *word) {
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (at[n] == ',' || at[n] == 0))
			return 1;
	return 0;
}

/* Returns how many messages each buffer holds. */
static size_t slots(const char *list) {
	size_t n = size;
	if (listed(list, "halo") && n < 4)
		n = 4;
	if (listed(list, "rate") && n < WINDOW)
		n = WINDOW;
	if (strstr(list, ":uneven"))
		n *= 2;
	if (strstr(list, ":columns") && n < COLUMNS)
		n = COLUMNS;
	return n;
}

/* Sets what the collectives use. */
static void use(MPI_Comm c, MPI_Op o) {
	comm = c;
	op = o;
	MPI_Comm_rank(comm, &comm_rank);
	MPI_Comm_size(comm, &comm_size);
	if (rotating) {
		root = 0;
		roots = comm_size < MAX_ROOTS ? comm_size : MAX_ROOTS;
	}
}

/* Measures a call with each of the sizes. */
static void measure_sizes(const char *collective, const char *function, call *run, char **argv, struct buffers small, struct buffers huge) {
	int empty = strncmp(collective, "barrier", 7) == 0 || run == do_split;
	for (char *at = argv[5]; *at; at += strcspn(at, ","), at += *at == ',') {
		int bytes = empty ? 0 : atoi(at);
		double limit = atof(argv[4]) * 1000;
		if (bytes < HUGE_FROM) {
			measure(collective, function, run, bytes, argv[1], argv[2], small, limit, limit);
		} else {
			measure(collective, function, run, bytes, argv[1], argv[2], small, limit, limit / 2);
			measure(collective, function, run, bytes, argv[1], argv[2], huge, limit / 4, limit / 2);
		}
		if (empty)
			break;
	}
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 7) {
		fprintf(stderr, "usage: mpi NAME TRANSPORT ROOT MILLISECONDS SIZE,... COLLECTIVE,...\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	root = atoi(argv[3]);
	roots = 1;
	if (root < 0) {
		root = 0;
		rotating = 1;
	}
	size_t longest = 0;
	for (char *at = argv[5]; *at; at += strcspn(at, ","), at += *at == ',') {
		size_t n = strtoul(at, NULL, 10);
		longest = n > longest ? n : longest;
	}
	size_t most = longest * slots(argv[6]);
	struct buffers small = {"", reserve(most, PAGE, 0), reserve(most, PAGE, 0)};
	struct buffers huge = {", huge pages", NULL, NULL};
	if (longest >= HUGE_FROM) {
		huge.in = reserve(most, HUGE_PAGE, 1);
		huge.out = reserve(most, HUGE_PAGE, 1);
	}
	counts = malloc(size * sizeof *counts);
	displacements = malloc(size * sizeof *displacements);
	rate = compute_rate();
	MPI_Op_create(add, 1, &caller_op);
	MPI_Comm_split(MPI_COMM_WORLD, 2 * rank / size, rank, &half);
	for (size_t which = 0; which < sizeof calls / sizeof *calls; which++) {
		if (!listed(argv[6], calls[which].collective))
			continue;
		use(MPI_COMM_WORLD, MPI_SUM);
		measure_sizes(calls[which].collective, calls[which].function, calls[which].run, argv, small, huge);
	}
	for (size_t which = 0; which < sizeof forms / sizeof *forms; which++) {
		if (!listed(argv[6], forms[which].collective))
			continue;
		use(forms[which].half ? half : MPI_COMM_WORLD, forms[which].caller ? caller_op : MPI_SUM);
		starts = forms[which].start;
		inits = forms[which].init;
		measure_sizes(forms[which].collective, forms[which].function, forms[which].run, argv, small, huge);
	}
	MPI_Finalize();
	return 0;
}
