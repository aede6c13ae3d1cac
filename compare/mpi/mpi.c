/* Measures MPI's collectives, and patterns of messages, with the loop of package internal/bench,
 * and prints the same rows.
 *
 * usage: mpi NAME TRANSPORT ROOT MILLISECONDS SIZE,... COLLECTIVE,...
 *
 * NAME and TRANSPORT are for the rows. ROOT -1 is a rotating root. Rank 0 prints each
 * row as a line of JSON as soon as it is measured.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include "loop.h"

static void synchronize(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void slowest_of(double *mine, double *slowest, int n) {
	MPI_Allreduce(mine, slowest, n, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

static void fail(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

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
	check_congestion();
	MPI_Finalize();
	return 0;
}
