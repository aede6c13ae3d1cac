//go:build mpi

// The MPI calls of this package. Constants and handles of MPI are macros that differ
// between libraries; Go sees none of them.

#if !__has_include(<mpi.h>)
#error "mpi.h is not found: build with -tags mpi,mpich or -tags mpi,ompi, or set CGO_CFLAGS and CGO_LDFLAGS as docs/transports.md says"
#endif

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { REQUESTS = 256, TEXT = 512 };

// A comm is a communicator and the requests in progress on it. One thread at a time uses
// it.
typedef struct {
	MPI_Comm    comm;
	MPI_Request barrier;
	int         entered; // a barrier is in progress
	int         active;  // requests in progress
	int         high;    // all of them are below
	MPI_Request request[REQUESTS];

	// What the last poll has found.
	int done;            // requests that are complete
	int index[REQUESTS]; // which
	int arrived;         // a frame is arriving: 0 for none, 1, or 2 if it has arrived completely
	int source, bytes;   // of the frame

	char error[TEXT]; // of the last call that failed
} comm;

// library_init starts MPI. Threads may call it: 0 for one, 1 for one at a time, 2 for all.
int   library_init(int *owned, int *threads, int *rank, int *size, char *version, char *error);
int   library_hosts(int *hosts, int *processors, char *error);
int   library_finalize(void);
int   library_pause(long nanoseconds);
void  library_yield(void);
void *library_alloc(size_t size);

comm *comm_new(int first, char *error);
// The memory of a message is an address: Go does not look for pointers in what is around it.
int   comm_send(comm *c, int index, uintptr_t p, int n, int to, int tag);
int   comm_recv(comm *c, int index, uintptr_t p, int n, int from, int tag);
int   comm_poll(comm *c, int rounds, int yields, int index, void *p, int size, int tag);
int   comm_cancel(comm *c, int index);
int   comm_barrier(comm *c);
