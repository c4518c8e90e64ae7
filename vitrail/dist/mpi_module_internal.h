// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library and its MPI module agree on: a table of C functions, so that nothing of C++ crosses between them.
#include <cstddef>
#include <cstdint>

namespace vitrail::dist {

constexpr int kMpiModuleVersion = 1;  // raised with every change of the table
constexpr size_t kMpiMessage = 512;   // bytes for the text of an error

// Each function returns 0, or something else and the reason in `message` [kMpiMessage].
struct MpiModule {
  int version;
  int (*start)(int* rank, int* size, char* message);
  int (*all_reduce_sum)(void* data, int64_t n, int doubles, char* message);  // doubles: else floats
  int (*broadcast)(void* data, size_t bytes, int root, char* message);
  int (*barrier)(char* message);
  int (*finish)(char* message);
  void (*fail)();  // ends all processes of the run
};

// The module's one exported function, of this type and name.
using MpiModuleEntry = const MpiModule* (*)();
constexpr const char* kMpiModuleEntry = "vitrail_mpi_module";
constexpr const char* kMpiModuleFile = "vitrail_mpi.so";

}  // namespace vitrail::dist
