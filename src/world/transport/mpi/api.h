#pragma once
// MPI as Echelon needs it: a handful of functions, found at run time in libechelon_mpi.so
// (world/transport/mpi/plugin.cpp), so that the program also runs where there is no MPI, and those who do not use it
// load none of its twelve libraries.
//
// Plain C types only: the two sides may be built by different compilers. All functions return 0 or an MPI error code;
// `explain` says what it means. Thread-safe as far as `threads` says.

#include <cstddef>

extern "C" {

struct EchelonMpiRequest {
  alignas(16) unsigned char bytes[16];  // holds an MPI_Request
};

constexpr int echelon_mpi_api_version = 1;

struct EchelonMpiApi {
  int version;
  const char* library;  // "Open MPI v4.1.4, ..."; once started
  int rank, size;
  int threads;  // 1: any thread may call at any time; 0: one at a time

  int (*start)();
  int (*finish)();
  void (*abort)(int code);
  int (*explain)(int error, char* text, int capacity);

  int (*all_gather)(const void* mine, void* all, int bytes);  // blocking
  int (*send)(const void* bytes, int count, int to, int tag, EchelonMpiRequest* request);
  int (*receive)(void* bytes, int count, int from, int tag, EchelonMpiRequest* request);  // from -1: anybody
  // Whether the request is done; then where it came from and how many bytes.
  int (*test)(EchelonMpiRequest* request, int* done, int* from, int* count);
  int (*cancel)(EchelonMpiRequest* request);
  // In place, blocking. type: 1 float32, 2 float64, 3 int32, 4 int64; op: 0 sum, 1 min, 2 max.
  int (*all_reduce)(void* data, size_t count, int type, int op);
};

// The plugin's only symbol.
EchelonMpiApi* echelon_mpi_api();
}
