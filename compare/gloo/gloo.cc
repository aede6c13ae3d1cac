/* Measures Gloo's collectives over its TCP transport, with the loop of ../mpi/loop.h, and
 * prints the same rows.
 *
 * usage: gloo RANKS ROOT MILLISECONDS SIZE,... COLLECTIVE,...
 *
 * The program starts the ranks itself, as processes. They meet by files in a directory that
 * it makes in TMPDIR, and removes unless a signal ends it. ROOT -1 is a rotating root. Rank 0 prints each row as a line of JSON
 * as soon as it is measured. */
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "../mpi/loop.h"

static std::shared_ptr<gloo::rendezvous::Context> context;

static void fail(void) { exit(1); }

static void do_barrier(int) {
	gloo::BarrierOptions o(context);
	gloo::barrier(o);
}

static void synchronize(void) { do_barrier(0); }

static void slowest_of(double *mine, double *slowest, int n) {
	gloo::AllreduceOptions o(context);
	o.setInput(mine, n);
	o.setOutput(slowest, n);
	o.setReduceFunction([](void *to, const void *a, const void *b, size_t n) { gloo::max<double>(to, a, b, n); });
	gloo::allreduce(o);
}

static void sum(void *to, const void *a, const void *b, size_t n) { gloo::sum<float>(to, a, b, n); }

static void do_bcast(int n) {
	gloo::BroadcastOptions o(context);
	o.setOutput(out, n);
	o.setRoot(next_root());
	gloo::broadcast(o);
}

static void do_reduce(int n) {
	gloo::ReduceOptions o(context);
	o.setInput((float *)in, n / 4);
	o.setOutput((float *)out, n / 4);
	o.setReduceFunction(sum);
	o.setRoot(next_root());
	gloo::reduce(o);
}

static void do_scatter(int n) {
	gloo::ScatterOptions o(context);
	int root = next_root();
	if (rank == root) {
		std::vector<char *> parts;
		for (int i = 0; i < size; i++)
			parts.push_back(in + (size_t)i * n);
		o.setInputs(parts, n);
	}
	o.setOutput(out, n);
	o.setRoot(root);
	gloo::scatter(o);
}

static void do_gather(int n) {
	gloo::GatherOptions o(context);
	int root = next_root();
	o.setInput(in, n);
	if (rank == root)
		o.setOutput(out, (size_t)n * size);
	o.setRoot(root);
	gloo::gather(o);
}

static void do_allgather(int n) {
	gloo::AllgatherOptions o(context);
	o.setInput(in, n);
	o.setOutput(out, (size_t)n * size);
	gloo::allgather(o);
}

static void do_alltoall(int n) {
	gloo::AlltoallOptions o(context);
	o.setInput(in, (size_t)n * size);
	o.setOutput(out, (size_t)n * size);
	gloo::alltoall(o);
}

static void allreduce(int n, gloo::AllreduceOptions::Algorithm algorithm) {
	gloo::AllreduceOptions o(context);
	o.setInput((float *)in, n / 4);
	o.setOutput((float *)out, n / 4);
	o.setReduceFunction(sum);
	o.setAlgorithm(algorithm);
	gloo::allreduce(o);
}

static void do_ring(int n) { allreduce(n, gloo::AllreduceOptions::Algorithm::RING); }
static void do_bcube(int n) { allreduce(n, gloo::AllreduceOptions::Algorithm::BCUBE); }

/* Algorithms that are objects, made for a size and buffers. Both work in place. */
static std::unique_ptr<gloo::Algorithm> made;

static void do_made(int) { made->run(); }

static void make_halving_doubling(int n) {
	made.reset(new gloo::AllreduceHalvingDoubling<float>(context, {(float *)out}, n / 4));
}

static void make_reduce_scatter(int n) {
	made.reset(new gloo::ReduceScatterHalvingDoubling<float>(context, {(float *)out}, n / 4 * size, std::vector<int>(size, n / 4)));
}

static const struct {
	const char *collective, *function;
	call *run, *make;
} calls[] = {
	{"bcast", "broadcast", do_bcast, NULL},
	{"reduce", "reduce", do_reduce, NULL},
	{"scatter", "scatter", do_scatter, NULL},
	{"gather", "gather", do_gather, NULL},
	{"allgather", "allgather", do_allgather, NULL},
	{"reduce-scatter", "ReduceScatterHalvingDoubling", do_made, make_reduce_scatter},
	{"allreduce", "allreduce ring", do_ring, NULL},
	{"allreduce", "allreduce bcube", do_bcube, NULL},
	{"allreduce", "AllreduceHalvingDoubling", do_made, make_halving_doubling},
	{"alltoall", "alltoall", do_alltoall, NULL},
	{"barrier", "barrier", do_barrier, NULL},
};

/* Measures a call, and prints its row. */
static void measure(size_t which, int bytes, struct buffers b, double warm, double limit) {
	in = b.in;
	out = b.out;
	memset(in, 0, bytes); /* sums that are made in place stay 0 */
	memset(out, 0, (size_t)bytes * size);
	if (calls[which].make)
		calls[which].make(bytes);
	for (int i = 0; i < roots; i++)
		calls[which].run(bytes);
	int n, have = sample(calls[which].run, bytes, warm, limit, &n);
	synchronize();
	made.reset();
	double mean = 0;
	for (int i = 0; i < have; i++)
		mean += samples[i] / have;
	if (rank > 0)
		return;
	printf("{\"collective\":\"%s\",\"algorithm\":\"Gloo %s%s\",\"transport\":\"tcp\",\"n\":%d,\"bytes\":%d,"
	       "\"iterations\":%d,\"min\":%.6g,\"median\":%.6g,\"p99\":%.6g,\"mean\":%.6g}\n",
	       calls[which].collective, calls[which].function, b.suffix, size, bytes,
	       n * have, samples[0], median_of(samples, have), samples[(int)ceil(0.99 * have) - 1], mean);
	fflush(stdout);
}

/* Runs one rank. */
static void run(char **argv, const std::string &directory) {
	gloo::transport::tcp::attr loopback;
	loopback.iface = "lo";
	auto device = gloo::transport::tcp::CreateDevice(loopback);
	gloo::rendezvous::FileStore store(directory);
	context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, device);

	rotating = atoi(argv[2]) < 0;
	root = rotating ? 0 : atoi(argv[2]);
	double limit = atof(argv[3]) * 1000;
	std::vector<int> sizes;
	int longest = 0;
	for (char *at = argv[4]; *at; at += strcspn(at, ","), at += *at == ',') {
		sizes.push_back(atoi(at));
		longest = std::max(longest, sizes.back());
	}
	size_t most = (size_t)longest * size;
	struct buffers small = {"", reserve(most, PAGE, 0), reserve(most, PAGE, 0)};
	struct buffers huge = {", huge pages", NULL, NULL};
	if (longest >= HUGE_FROM) {
		huge.in = reserve(most, HUGE_PAGE, 1);
		huge.out = reserve(most, HUGE_PAGE, 1);
	}
	for (size_t which = 0; which < sizeof calls / sizeof *calls; which++) {
		if (!listed(argv[5], calls[which].collective))
			continue;
		roots = 1;
		if (rotating) {
			root = 0;
			roots = std::min(size, (int)MAX_ROOTS);
		}
		if (calls[which].run == do_barrier) {
			measure(which, 0, small, limit, limit);
			continue;
		}
		for (int bytes : sizes) {
			if (bytes < HUGE_FROM) {
				measure(which, bytes, small, limit, limit);
			} else {
				measure(which, bytes, small, limit, limit / 2);
				measure(which, bytes, huge, limit / 4, limit / 2);
			}
		}
	}
	check_congestion();
	synchronize();
}

int main(int argc, char **argv) {
	if (argc != 6 || (size = atoi(argv[1])) < 1) {
		fprintf(stderr, "usage: gloo RANKS ROOT MILLISECONDS SIZE,... COLLECTIVE,...\n");
		return 2;
	}
	std::string directory = std::filesystem::temp_directory_path() / "gloo-XXXXXX";
	if (!mkdtemp(directory.data())) {
		perror(directory.c_str());
		return 1;
	}
	std::vector<pid_t> ranks;
	for (rank = 0; rank < size; rank++) {
		pid_t child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			try {
				run(argv, directory);
			} catch (const std::exception &e) {
				fprintf(stderr, "rank %d: %s\n", rank, e.what());
				_exit(1);
			}
			fflush(NULL);
			_exit(0);
		}
		ranks.push_back(child);
	}
	int failed = 0;
	for (size_t ended = 0; ended < ranks.size(); ended++) {
		int status;
		wait(&status);
		if (status && !failed++)
			for (pid_t r : ranks)
				kill(r, SIGKILL);
	}
	std::filesystem::remove_all(directory);
	return failed > 0;
}
