// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface between the library and its MPI module: a table of C functions, independent of the C++ ABI.
#include <cstddef>
#include <cstdint>

namespace vitrail::dist {

constexpr int kMpiModuleVersion = 1;      // incremented with every change of the table
constexpr size_t kMpiMessageBytes = 512;  // size of the buffer for an error message

// Each function returns 0 on success, else it writes the reason to `message` [kMpiMessageBytes].
struct MpiModule {
  int version;
  int (*start)(int* rank, int* size, char* message);
  int (*all_reduce_sum)(void* data, int64_t n, int is_double, char* message);  // is_double: 1 for f64, 0 for f32
  int (*broadcast)(void* data, size_t bytes, int root, char* message);
  int (*barrier)(char* message);
  int (*finish)(char* message);
  void (*abort_all)();  // ends all processes of the run
};

// The type and name of the only exported function of the module, and its file name.
using MpiModuleEntry = const MpiModule* (*)();
constexpr const char* kMpiModuleEntry = "vitrail_mpi_module";
constexpr const char* kMpiModuleFile = "vitrail_mpi.so";

}  // namespace vitrail::dist
