// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of the process that a shell, a daemon or a batch system may leave unusual, and its limits.
#include <cstdint>
#include <functional>

namespace vitrail::app {

// Opens the descriptors 0 to 2 that are closed, so that no file that the program opens gets one of them: messages would
// be written into it.  Reading from a closed standard input and writing to a closed standard output fail, as before.
void open_closed_standard_streams();

// Makes a write beyond the limit of file sizes (ulimit -f) fail with EFBIG.  The default action ends the process.
void ignore_file_size_signal();

// Makes allocations fail (std::bad_alloc) when the writable private memory of the process would exceed this size.
// Throws Error if the system refuses the limit.
void limit_memory(int64_t bytes);

// Deletes temporary files when a signal ends the process (SIGHUP, SIGINT, SIGQUIT, SIGTERM).
void remove_temporary_files_on_signals();

// Returns body(), which must not throw.  If the limit of stacks (ulimit -s) is small, `body` runs on a thread whose
// stack has the usual size, and the threads that start later have such stacks too: image decoders, kernels and
// generated code use more than a small limit permits.
int run_with_enough_stack(const std::function<int()>& body);

}  // namespace vitrail::app
