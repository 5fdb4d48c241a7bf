// Echelon's api to MPI (world/transport/mpi/api.h), in a library of its own.

#define OMPI_SKIP_MPICXX 1  // NOLINT: we speak C with it
#include <mpi.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>

#include "world/transport/mpi/api.h"

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(EchelonMpiRequest));

struct State {  // of the process: MPI itself is such a thing
  EchelonMpiApi api = {};
  MPI_Comm messages = MPI_COMM_NULL, reductions = MPI_COMM_NULL;
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
};
State state;

MPI_Request load(const EchelonMpiRequest* r) {
  MPI_Request request;
  std::memcpy(&request, r->bytes, sizeof request);
  return request;
}
void store(EchelonMpiRequest* r, MPI_Request request) { std::memcpy(r->bytes, &request, sizeof request); }

int start() {
  int provided = 0;
  if (const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided)) return error;
  state.api.threads = provided >= MPI_THREAD_MULTIPLE ? 1 : 0;
  // Errors come back to us instead of ending the program without a word of ours.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (MPI_Comm* copy : {&state.messages, &state.reductions}) {
    if (const int error = MPI_Comm_dup(MPI_COMM_WORLD, copy)) return error;
    MPI_Comm_set_errhandler(*copy, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(state.messages, &state.api.rank);
  MPI_Comm_size(state.messages, &state.api.size);
  int length = 0;
  MPI_Get_library_version(state.library, &length);
  state.api.library = state.library;
  return 0;
}

int finish() {
  MPI_Comm_free(&state.messages);
  MPI_Comm_free(&state.reductions);
  return MPI_Finalize();
}

void abort_job(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int explain(int error, char* text, int capacity) {
  char words[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(error, words, &length);
  std::strncpy(text, words, static_cast<std::size_t>(capacity) - 1);
  text[capacity - 1] = '\0';
  return 0;
}

int all_gather(const void* mine, void* all, int bytes) {
  return MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, state.messages);
}

int send(const void* bytes, int count, int to, int tag, EchelonMpiRequest* r) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Isend(bytes, count, MPI_BYTE, to, tag, state.messages, &request);
  store(r, request);
  return error;
}

int receive(void* bytes, int count, int from, int tag, EchelonMpiRequest* r) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int error = MPI_Irecv(bytes, count, MPI_BYTE, from < 0 ? MPI_ANY_SOURCE : from, tag, state.messages, &request);
  store(r, request);
  return error;
}

int test(EchelonMpiRequest* r, int* done, int* from, int* count) {
  MPI_Request request = load(r);
  MPI_Status status;
  const int error = MPI_Test(&request, done, &status);
  store(r, request);
  if (error || !*done) return error;
  *from = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, count);
}

int cancel(EchelonMpiRequest* r) {
  MPI_Request request = load(r);
  if (request == MPI_REQUEST_NULL) return 0;
  const int error = MPI_Cancel(&request);
  MPI_Request_free(&request);
  store(r, request);
  return error;
}

int all_reduce(void* data, size_t count, int type, int op) {
  const MPI_Datatype types[] = {MPI_BYTE, MPI_FLOAT, MPI_DOUBLE, MPI_INT32_T, MPI_INT64_T};
  const int sizes[] = {1, 4, 8, 4, 8};
  const MPI_Op ops[] = {MPI_SUM, MPI_MIN, MPI_MAX};
  constexpr std::size_t most = std::numeric_limits<int>::max();
  auto* at = static_cast<char*>(data);
  while (count > 0) {  // MPI counts with an int
    const std::size_t n = count < most ? count : most;
    if (const int error =
            MPI_Allreduce(MPI_IN_PLACE, at, static_cast<int>(n), types[type], ops[op], state.reductions)) {
      return error;
    }
    at += n * static_cast<std::size_t>(sizes[type]);
    count -= n;
  }
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) EchelonMpiApi* echelon_mpi_api() {
  state.api = {echelon_mpi_api_version,
               "",
               0,
               1,
               0,
               start,
               finish,
               abort_job,
               explain,
               all_gather,
               send,
               receive,
               test,
               cancel,
               all_reduce};
  return &state.api;
}
