//go:build mpi

#define _GNU_SOURCE
#include "library.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// explain writes the text of an MPI error, and returns -1.
static int explain(int rc, char *error) {
	char text[MPI_MAX_ERROR_STRING + 1] = "";
	int n = 0;
	if (MPI_Error_string(rc, text, &n) != MPI_SUCCESS)
		n = 0;
	text[n] = 0;
	strncpy(error, text, TEXT - 1);
	error[TEXT - 1] = 0;
	return -1;
}

// alternate_stacks has every signal handler of C run on the alternate stack of the
// thread. The Go runtime ends the process at a signal whose handler does not; MPICH
// installs such a handler for SIGUSR1.
static void alternate_stacks(void) {
	for (int s = 1; s < NSIG; s++) {
		struct sigaction a;
		if (sigaction(s, NULL, &a) != 0 || a.sa_flags & SA_ONSTACK)
			continue;
		if (!(a.sa_flags & SA_SIGINFO) && (a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN))
			continue;
		a.sa_flags |= SA_ONSTACK;
		sigaction(s, &a, NULL);
	}
}

// faults are the signals that the Go runtime makes panics of. UCX catches them, too.
static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
enum { FAULTS = sizeof faults / sizeof *faults };

int library_init(int *owned, int *threads, int *rank, int *size, char *version, char *error) {
	int rc, initialized = 0, finalized = 0, provided = 0, n = 0;
	struct sigaction handlers[FAULTS];
	MPI_Finalized(&finalized);
	if (finalized) {
		strcpy(error, "MPI_Finalize was called");
		return -1;
	}
	MPI_Initialized(&initialized);
	*owned = !initialized;
	for (int i = 0; i < FAULTS; i++)
		sigaction(faults[i], NULL, &handlers[i]);
	rc = initialized ? MPI_Query_thread(&provided) : MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	if (rc != MPI_SUCCESS)
		return explain(rc, error);
	*threads = provided >= MPI_THREAD_MULTIPLE ? 2 : provided >= MPI_THREAD_SERIALIZED ? 1 : 0;
	for (int i = 0; i < FAULTS; i++)
		sigaction(faults[i], &handlers[i], NULL);
	alternate_stacks();
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, rank);
	MPI_Comm_size(MPI_COMM_WORLD, size);
	char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
	MPI_Get_library_version(text, &n);
	text[n] = 0;
	strncpy(version, text, TEXT - 1);
	version[TEXT - 1] = 0;
	return 0;
}

// library_hosts returns the lowest rank of each rank's host, and the fewest processors that
// a rank has.
int library_hosts(int *hosts, int *processors, char *error) {
	MPI_Comm host;
	int rc, lowest;
	MPI_Comm_rank(MPI_COMM_WORLD, &lowest);
	rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
	if (rc != MPI_SUCCESS)
		return explain(rc, error);
	rc = MPI_Bcast(&lowest, 1, MPI_INT, 0, host);
	MPI_Comm_free(&host);
	if (rc == MPI_SUCCESS)
		rc = MPI_Allgather(&lowest, 1, MPI_INT, hosts, 1, MPI_INT, MPI_COMM_WORLD);
	if (rc == MPI_SUCCESS)
		rc = MPI_Allreduce(MPI_IN_PLACE, processors, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	return rc == MPI_SUCCESS ? 0 : explain(rc, error);
}

int library_finalize(void) { return MPI_Finalize() == MPI_SUCCESS ? 0 : -1; }

int library_pause(long nanoseconds) {
	struct timespec t = {0, nanoseconds};
	return nanosleep(&t, NULL);
}

void library_yield(void) { sched_yield(); }

void *library_alloc(size_t size) {
	void *p = NULL;
	return posix_memalign(&p, 64, size) == 0 ? p : NULL;
}

// comm_new makes a communicator of the first ranks of the world, on each of these.
comm *comm_new(int first, char *error) {
	int rc, ranks[1][3] = {{0, first - 1, 1}};
	MPI_Group world, group;
	comm *c = calloc(1, sizeof *c);
	if (c == NULL) {
		strcpy(error, "out of memory");
		return NULL;
	}
	for (int i = 0; i < REQUESTS; i++)
		c->request[i] = MPI_REQUEST_NULL;
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_range_incl(world, 1, ranks, &group);
	rc = MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &c->comm);
	if (rc == MPI_SUCCESS)
		rc = MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
	MPI_Group_free(&group);
	MPI_Group_free(&world);
	if (rc != MPI_SUCCESS) {
		explain(rc, error);
		free(c);
		return NULL;
	}
	return c;
}

// started notes that a request has begun. It returns 1 if the request is complete.
static int started(comm *c, int index) {
	int done = 0;
	int rc = MPI_Test(&c->request[index], &done, MPI_STATUS_IGNORE);
	if (rc != MPI_SUCCESS)
		return explain(rc, c->error);
	if (done)
		return 1;
	c->active++;
	if (index >= c->high)
		c->high = index + 1;
	return 0;
}

int comm_send(comm *c, int index, uintptr_t p, int n, int to, int tag) {
	int rc = MPI_Isend((const void *)p, n, MPI_BYTE, to, tag, c->comm, &c->request[index]);
	return rc == MPI_SUCCESS ? started(c, index) : explain(rc, c->error);
}

int comm_recv(comm *c, int index, uintptr_t p, int n, int from, int tag) {
	int rc = MPI_Irecv((void *)p, n, MPI_BYTE, from, tag, c->comm, &c->request[index]);
	return rc == MPI_SUCCESS ? started(c, index) : explain(rc, c->error);
}

// arriving begins to receive the next frame into p, if there is one.
static int arriving(comm *c, int index, void *p, int size, int tag) {
	int found = 0, rc;
	MPI_Message message;
	MPI_Status status;
	rc = MPI_Improbe(MPI_ANY_SOURCE, tag, c->comm, &found, &message, &status);
	if (rc != MPI_SUCCESS)
		return explain(rc, c->error);
	if (!found)
		return 0;
	c->source = status.MPI_SOURCE;
	MPI_Get_count(&status, MPI_BYTE, &c->bytes);
	if (c->bytes < 0 || c->bytes > size) {
		strcpy(c->error, "a frame is longer than any that is sent");
		return -1;
	}
	rc = MPI_Imrecv(p, c->bytes, MPI_BYTE, &message, &c->request[index]);
	if (rc != MPI_SUCCESS)
		return explain(rc, c->error);
	rc = started(c, index);
	if (rc >= 0)
		c->arrived = 1 + rc;
	return rc;
}

// GCC takes the MPI_STATUSES_IGNORE of MPICH for an array of no length.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#endif

// comm_poll looks for requests that are complete, and for a frame, which goes to p
// unless p is NULL. It looks again if it finds nothing, some rounds at most.
int comm_poll(comm *c, int rounds, int yields, int index, void *p, int size, int tag) {
	c->done = c->arrived = 0;
	for (;;) {
		if (c->active > 0) {
			int rc = MPI_Testsome(c->high, c->request, &c->done, c->index, MPI_STATUSES_IGNORE);
			if (rc != MPI_SUCCESS)
				return explain(rc, c->error);
			if (c->done == MPI_UNDEFINED)
				c->done = 0;
			c->active -= c->done;
			while (c->high > 0 && c->request[c->high - 1] == MPI_REQUEST_NULL)
				c->high--;
		}
		if (p != NULL && arriving(c, index, p, size, tag) < 0)
			return -1;
		if (c->done > 0 || c->arrived || --rounds <= 0)
			return 0;
		if (yields)
			sched_yield();
	}
}

// comm_cancel takes back a receive that no message will match. It returns 1 if the
// request is over with that, and 0 if comm_poll will say so.
int comm_cancel(comm *c, int index) {
	int done = 0;
	int rc = MPI_Cancel(&c->request[index]);
	if (rc == MPI_SUCCESS)
		rc = MPI_Test(&c->request[index], &done, MPI_STATUS_IGNORE);
	if (rc != MPI_SUCCESS)
		return explain(rc, c->error);
	c->active -= done;
	return done;
}

// comm_barrier enters a barrier of all ranks, and returns 1 when all have. It is called
// until then.
int comm_barrier(comm *c) {
	int done = 0, rc;
	if (!c->entered) {
		c->entered = 1;
		rc = MPI_Ibarrier(c->comm, &c->barrier);
		if (rc != MPI_SUCCESS)
			return explain(rc, c->error);
	}
	rc = MPI_Test(&c->barrier, &done, MPI_STATUS_IGNORE);
	c->entered = !done;
	return rc == MPI_SUCCESS ? done : explain(rc, c->error);
}
