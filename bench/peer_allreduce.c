/* MPI_Allreduce of floats, timed as `echelon bench collective` times Echelon's: the median over repetitions, each after a
 * barrier, of the slowest rank. One JSON object for each size.
 *   mpicc -O2 peer_allreduce.c -o peer_allreduce && mpirun -np 2 ./peer_allreduce 4096 1048576 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median_seconds(float* in, float* out, int count, int repeats) {
  double* seconds = malloc((size_t)repeats * sizeof(double));
  for (int i = -3; i < repeats; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) seconds[i] = MPI_Wtime() - start;
  }
  qsort(seconds, (size_t)repeats, sizeof(double), by_size);
  double own = seconds[repeats / 2], slowest = 0;
  MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  free(seconds);
  return slowest;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int a = 1; a < argc; ++a) {
    const long bytes = atol(argv[a]);
    float *in = malloc((size_t)bytes + 4), *out = malloc((size_t)bytes + 4);
    memset(in, 0, (size_t)bytes);
    memset(out, 0, (size_t)bytes);
    const int repeats = bytes > 10000000 ? 15 : bytes > 500000 ? 200 : 2000;
    const double seconds = median_seconds(in, out, (int)(bytes / 4), repeats);
    if (rank == 0) {
      printf("{\"bytes\": %ld, \"ranks\": %d, \"time_us\": %.3f}\n", bytes, ranks, seconds * 1e6);
      fflush(stdout);
    }
    free(in);
    free(out);
  }
  MPI_Finalize();
  return 0;
}
