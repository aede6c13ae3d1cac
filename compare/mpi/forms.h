/* The other forms of calls: package internal/bench has the same under the same names. */

enum { COLUMNS = 16 }; /* of an exchanged matrix */

/* Nonblocking calls, which leave their request in pending[0]. */
static void start_bcast(int n) { MPI_Ibcast(out, n, MPI_BYTE, next_root(), comm, pending); }
static void start_reduce(int n) { MPI_Ireduce(in, out, n / 4, MPI_FLOAT, op, next_root(), comm, pending); }
static void start_scatter(int n) { MPI_Iscatter(in, n, MPI_BYTE, out, n, MPI_BYTE, next_root(), comm, pending); }
static void start_gather(int n) { MPI_Igather(in, n, MPI_BYTE, out, n, MPI_BYTE, next_root(), comm, pending); }
static void start_allgather(int n) { MPI_Iallgather(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, pending); }
static void start_reduce_scatter(int n) { MPI_Ireduce_scatter_block(in, out, n / 4, MPI_FLOAT, op, comm, pending); }
static void start_allreduce(int n) { MPI_Iallreduce(in, out, n / 4, MPI_FLOAT, op, comm, pending); }
static void start_alltoall(int n) { MPI_Ialltoall(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, pending); }
static void start_scan(int n) { MPI_Iscan(in, out, n / 4, MPI_FLOAT, op, comm, pending); }
static void start_exscan(int n) { MPI_Iexscan(in, out, n / 4, MPI_FLOAT, op, comm, pending); }
static void start_barrier(int n) { (void)n; MPI_Ibarrier(comm, pending); }

static call *starts; /* the call that the functions below start */

static void do_nonblocking(int n) {
	starts(n);
	MPI_Wait(pending, MPI_STATUS_IGNORE);
}

static double rate; /* of compute, in iterations per µs */

static void compute(long n) {
	static volatile double computed; /* keeps the compiler from leaving the loop out */
	double x = 0; /* which is no fixed point */
	for (long i = 0; i < n; i++)
		x = x * 0.999999 + 0.000001;
	computed = x;
}

static double compute_rate(void) {
	const long n = 100000;
	double best = 1e9;
	for (int i = 0; i < 20; i++) {
		double begin = now();
		compute(n);
		best = fmin(best, now() - begin);
	}
	return n / best;
}

static const double overlapTime = 20, overlapBytes = 1000;

static void do_compute(int n) { compute((long)(rate * (overlapTime + n / overlapBytes))); }

static void do_overlap(int n) {
	starts(n);
	do_compute(n);
	MPI_Wait(pending, MPI_STATUS_IGNORE);
}

/* Prepared calls, which exist since MPI 4: one for each root. */
typedef void init(int bytes, int root, MPI_Request *request);

static init *inits;
static MPI_Request prepared[MAX_ROOTS];

static void prepare_form(int bytes) {
	for (int r = 0; inits && r < roots; r++)
		inits(bytes, roots > 1 ? r : root, &prepared[r]);
}

static void free_form(void) {
	for (int r = 0; inits && r < roots; r++)
		MPI_Request_free(&prepared[r]);
}

#if MPI_VERSION >= 4
static void init_bcast(int n, int r, MPI_Request *q) { MPI_Bcast_init(out, n, MPI_BYTE, r, comm, MPI_INFO_NULL, q); }
static void init_reduce(int n, int r, MPI_Request *q) { MPI_Reduce_init(in, out, n / 4, MPI_FLOAT, op, r, comm, MPI_INFO_NULL, q); }
static void init_scatter(int n, int r, MPI_Request *q) { MPI_Scatter_init(in, n, MPI_BYTE, out, n, MPI_BYTE, r, comm, MPI_INFO_NULL, q); }
static void init_gather(int n, int r, MPI_Request *q) { MPI_Gather_init(in, n, MPI_BYTE, out, n, MPI_BYTE, r, comm, MPI_INFO_NULL, q); }
static void init_allgather(int n, int r, MPI_Request *q) { (void)r; MPI_Allgather_init(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, MPI_INFO_NULL, q); }
static void init_reduce_scatter(int n, int r, MPI_Request *q) { (void)r; MPI_Reduce_scatter_block_init(in, out, n / 4, MPI_FLOAT, op, comm, MPI_INFO_NULL, q); }
static void init_allreduce(int n, int r, MPI_Request *q) { (void)r; MPI_Allreduce_init(in, out, n / 4, MPI_FLOAT, op, comm, MPI_INFO_NULL, q); }
static void init_alltoall(int n, int r, MPI_Request *q) { (void)r; MPI_Alltoall_init(in, n, MPI_BYTE, out, n, MPI_BYTE, comm, MPI_INFO_NULL, q); }
static void init_scan(int n, int r, MPI_Request *q) { (void)r; MPI_Scan_init(in, out, n / 4, MPI_FLOAT, op, comm, MPI_INFO_NULL, q); }
static void init_exscan(int n, int r, MPI_Request *q) { (void)r; MPI_Exscan_init(in, out, n / 4, MPI_FLOAT, op, comm, MPI_INFO_NULL, q); }
static void init_barrier(int n, int r, MPI_Request *q) { (void)n; (void)r; MPI_Barrier_init(comm, MPI_INFO_NULL, q); }

static void do_prepared(int n) {
	(void)n;
	MPI_Request *r = &prepared[roots > 1 ? next_root() : 0];
	MPI_Start(r);
	MPI_Wait(r, MPI_STATUS_IGNORE);
}
#endif

/* Parts that differ in length. */

static int *displacements;

static int part(int n, int k) { return k % 2 ? n + n - n / 2 : k + 1 < size ? n / 2 : n; }

/* Sets counts, where the first part is that of rank first, and displacements. */
static int divide(int n, int first) {
	int sum = 0;
	for (int k = 0; k < size; k++) {
		counts[k] = part(n, (first + k) % size);
		displacements[k] = sum;
		sum += counts[k];
	}
	return counts[rank];
}

static void do_scatterv(int n) {
	int own = divide(n, 0);
	MPI_Scatterv(in, counts, displacements, MPI_BYTE, out, own, MPI_BYTE, next_root(), comm);
}

static void do_gatherv(int n) {
	int own = divide(n, 0);
	MPI_Gatherv(in, own, MPI_BYTE, out, counts, displacements, MPI_BYTE, next_root(), comm);
}

static void do_allgatherv(int n) {
	int own = divide(n, 0);
	MPI_Allgatherv(in, own, MPI_BYTE, out, counts, displacements, MPI_BYTE, comm);
}

static void do_reduce_scatterv(int n) {
	divide(n / 4, 0);
	MPI_Reduce_scatter(in, out, counts, MPI_FLOAT, op, comm);
}

static void do_alltoallv(int n) {
	divide(n, rank);
	MPI_Alltoallv(in, counts, displacements, MPI_BYTE, out, counts, displacements, MPI_BYTE, comm);
}

/* An operation of the caller's. */

static MPI_Op caller_op;
static MPI_Comm half; /* the lower or the upper half of the ranks */

static void add(void *invec, void *inoutvec, int *n, MPI_Datatype *type) {
	(void)type;
	const float *a = invec;
	float *b = inoutvec;
	for (int i = 0; i < *n; i++)
		b[i] = a[i] + b[i];
}

/* Columns of a matrix of doubles. */

/* Returns the type of a column of a matrix with so many columns. The next column
 * begins an element later. */
static MPI_Datatype column(int rows, int columns) {
	static MPI_Datatype vector, type;
	static int have_rows = -1, have_columns;
	if (rows == have_rows && columns == have_columns)
		return type;
	if (have_rows >= 0)
		MPI_Type_free(&type);
	have_rows = rows;
	have_columns = columns;
	MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &vector);
	MPI_Type_create_resized(vector, 0, sizeof(double), &type);
	MPI_Type_commit(&type);
	MPI_Type_free(&vector);
	return type;
}

static void do_exchange_columns(int n) {
	int peer = rank ^ 1;
	MPI_Datatype type = column(n / 8, COLUMNS);
	if (peer < size)
		MPI_Sendrecv(in, 1, type, peer, 0, out, 1, type, peer, 0, comm, MPI_STATUS_IGNORE);
}

static void do_scatter_columns(int n) {
	MPI_Scatter(in, 1, column(n / 8, size), out, n / 8, MPI_DOUBLE, next_root(), comm);
}

static void do_gather_columns(int n) {
	MPI_Gather(in, n / 8, MPI_DOUBLE, out, 1, column(n / 8, size), next_root(), comm);
}

static const struct {
	const char *collective, *function;
	call *run, *start;
	init *init;
	int half, caller; /* the communicator, and the operation */
} forms[] = {
	{"bcast:nonblocking", "MPI_Ibcast MPI_Wait", do_nonblocking, start_bcast, NULL, 0, 0},
	{"bcast:overlap", "MPI_Ibcast MPI_Wait", do_overlap, start_bcast, NULL, 0, 0},
	{"bcast:half", "MPI_Bcast", do_bcast, NULL, NULL, 1, 0},
	{"reduce:nonblocking", "MPI_Ireduce MPI_Wait", do_nonblocking, start_reduce, NULL, 0, 0},
	{"reduce:overlap", "MPI_Ireduce MPI_Wait", do_overlap, start_reduce, NULL, 0, 0},
	{"reduce:half", "MPI_Reduce", do_reduce, NULL, NULL, 1, 0},
	{"reduce:func", "MPI_Reduce", do_reduce, NULL, NULL, 0, 1},
	{"reduce:slices", "MPI_Reduce", do_reduce, NULL, NULL, 0, 1},
	{"scatter:nonblocking", "MPI_Iscatter MPI_Wait", do_nonblocking, start_scatter, NULL, 0, 0},
	{"scatter:overlap", "MPI_Iscatter MPI_Wait", do_overlap, start_scatter, NULL, 0, 0},
	{"scatter:half", "MPI_Scatter", do_scatter, NULL, NULL, 1, 0},
	{"gather:nonblocking", "MPI_Igather MPI_Wait", do_nonblocking, start_gather, NULL, 0, 0},
	{"gather:overlap", "MPI_Igather MPI_Wait", do_overlap, start_gather, NULL, 0, 0},
	{"gather:half", "MPI_Gather", do_gather, NULL, NULL, 1, 0},
	{"allgather:nonblocking", "MPI_Iallgather MPI_Wait", do_nonblocking, start_allgather, NULL, 0, 0},
	{"allgather:overlap", "MPI_Iallgather MPI_Wait", do_overlap, start_allgather, NULL, 0, 0},
	{"allgather:half", "MPI_Allgather", do_allgather, NULL, NULL, 1, 0},
	{"reduce-scatter:nonblocking", "MPI_Ireduce_scatter_block MPI_Wait", do_nonblocking, start_reduce_scatter, NULL, 0, 0},
	{"reduce-scatter:overlap", "MPI_Ireduce_scatter_block MPI_Wait", do_overlap, start_reduce_scatter, NULL, 0, 0},
	{"reduce-scatter:half", "MPI_Reduce_scatter_block", do_reduce_scatter_block, NULL, NULL, 1, 0},
	{"reduce-scatter:func", "MPI_Reduce_scatter_block", do_reduce_scatter_block, NULL, NULL, 0, 1},
	{"reduce-scatter:slices", "MPI_Reduce_scatter_block", do_reduce_scatter_block, NULL, NULL, 0, 1},
	{"allreduce:nonblocking", "MPI_Iallreduce MPI_Wait", do_nonblocking, start_allreduce, NULL, 0, 0},
	{"allreduce:overlap", "MPI_Iallreduce MPI_Wait", do_overlap, start_allreduce, NULL, 0, 0},
	{"allreduce:half", "MPI_Allreduce", do_allreduce, NULL, NULL, 1, 0},
	{"allreduce:func", "MPI_Allreduce", do_allreduce, NULL, NULL, 0, 1},
	{"allreduce:slices", "MPI_Allreduce", do_allreduce, NULL, NULL, 0, 1},
	{"alltoall:nonblocking", "MPI_Ialltoall MPI_Wait", do_nonblocking, start_alltoall, NULL, 0, 0},
	{"alltoall:overlap", "MPI_Ialltoall MPI_Wait", do_overlap, start_alltoall, NULL, 0, 0},
	{"alltoall:half", "MPI_Alltoall", do_alltoall, NULL, NULL, 1, 0},
	{"scan:nonblocking", "MPI_Iscan MPI_Wait", do_nonblocking, start_scan, NULL, 0, 0},
	{"scan:overlap", "MPI_Iscan MPI_Wait", do_overlap, start_scan, NULL, 0, 0},
	{"scan:half", "MPI_Scan", do_scan, NULL, NULL, 1, 0},
	{"scan:func", "MPI_Scan", do_scan, NULL, NULL, 0, 1},
	{"scan:slices", "MPI_Scan", do_scan, NULL, NULL, 0, 1},
	{"exscan:nonblocking", "MPI_Iexscan MPI_Wait", do_nonblocking, start_exscan, NULL, 0, 0},
	{"exscan:overlap", "MPI_Iexscan MPI_Wait", do_overlap, start_exscan, NULL, 0, 0},
	{"exscan:half", "MPI_Exscan", do_exscan, NULL, NULL, 1, 0},
	{"exscan:func", "MPI_Exscan", do_exscan, NULL, NULL, 0, 1},
	{"exscan:slices", "MPI_Exscan", do_exscan, NULL, NULL, 0, 1},
	{"barrier:nonblocking", "MPI_Ibarrier MPI_Wait", do_nonblocking, start_barrier, NULL, 0, 0},
	{"barrier:overlap", "MPI_Ibarrier MPI_Wait", do_overlap, start_barrier, NULL, 0, 0},
	{"barrier:half", "MPI_Barrier", do_barrier, NULL, NULL, 1, 0},
	{"scatter:uneven", "MPI_Scatterv", do_scatterv, NULL, NULL, 0, 0},
	{"gather:uneven", "MPI_Gatherv", do_gatherv, NULL, NULL, 0, 0},
	{"allgather:uneven", "MPI_Allgatherv", do_allgatherv, NULL, NULL, 0, 0},
	{"reduce-scatter:uneven", "MPI_Reduce_scatter", do_reduce_scatterv, NULL, NULL, 0, 0},
	{"alltoall:uneven", "MPI_Alltoallv", do_alltoallv, NULL, NULL, 0, 0},
	{"exchange:columns", "MPI_Sendrecv", do_exchange_columns, NULL, NULL, 0, 0},
	{"scatter:columns", "MPI_Scatter", do_scatter_columns, NULL, NULL, 0, 0},
	{"gather:columns", "MPI_Gather", do_gather_columns, NULL, NULL, 0, 0},
#if MPI_VERSION >= 4
	{"bcast:prepared", "MPI_Bcast_init MPI_Start", do_prepared, NULL, init_bcast, 0, 0},
	{"reduce:prepared", "MPI_Reduce_init MPI_Start", do_prepared, NULL, init_reduce, 0, 0},
	{"scatter:prepared", "MPI_Scatter_init MPI_Start", do_prepared, NULL, init_scatter, 0, 0},
	{"gather:prepared", "MPI_Gather_init MPI_Start", do_prepared, NULL, init_gather, 0, 0},
	{"allgather:prepared", "MPI_Allgather_init MPI_Start", do_prepared, NULL, init_allgather, 0, 0},
	{"reduce-scatter:prepared", "MPI_Reduce_scatter_block_init MPI_Start", do_prepared, NULL, init_reduce_scatter, 0, 0},
	{"allreduce:prepared", "MPI_Allreduce_init MPI_Start", do_prepared, NULL, init_allreduce, 0, 0},
	{"alltoall:prepared", "MPI_Alltoall_init MPI_Start", do_prepared, NULL, init_alltoall, 0, 0},
	{"scan:prepared", "MPI_Scan_init MPI_Start", do_prepared, NULL, init_scan, 0, 0},
	{"exscan:prepared", "MPI_Exscan_init MPI_Start", do_prepared, NULL, init_exscan, 0, 0},
	{"barrier:prepared", "MPI_Barrier_init MPI_Start", do_prepared, NULL, init_barrier, 0, 0},
#endif
};
