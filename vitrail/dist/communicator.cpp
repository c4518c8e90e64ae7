// SPDX-License-Identifier: Apache-2.0
#include "vitrail/dist/communicator.h"

#include <algorithm>
#include <charconv>

#include "vitrail/base/env_internal.h"
#include "vitrail/base/error.h"
#include "vitrail/dist/mpi_communicator_internal.h"

namespace vitrail::dist {
namespace {

class SingleProcess : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(float*, int64_t) override {}
  void all_reduce_sum(double*, int64_t) override {}
  void broadcast(void*, size_t, int root) override {
    if (root != 0) throw Error("broadcast", "process 0, the only one", str(root));
  }
  void barrier() override {}
  void finish() override {}
};

int parse_number(const char* variable, const std::string& text) {
  int value = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() || value < 0) {
    throw Error(variable, "a number", "'" + text + "'");
  }
  return value;
}

}  // namespace

Launch launch_from_environment() {
  // Variables of Open MPI, then of MPICH and its derivatives.  Slurm's own variables are not read, because Slurm also
  // sets them for a batch script that is a single process.
  constexpr const char* kVariables[][3]{{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                                        {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"}};
  for (const auto& [rank_name, size_name, local_name] : kVariables) {
    const auto rank = environment(rank_name), size = environment(size_name);
    if (!rank || !size) continue;
    const auto local = environment(local_name);
    const Launch launch{parse_number(rank_name, *rank), parse_number(size_name, *size),
                        local ? std::max(1, parse_number(local_name, *local)) : 1};
    if (launch.size < 1 || launch.rank >= launch.size) {
      throw Error(rank_name, str("a number below ", size_name, ", which is ", launch.size), str(launch.rank));
    }
    return launch;
  }
  return {};
}

std::shared_ptr<Communicator> single_process() { return std::make_shared<SingleProcess>(); }

std::shared_ptr<Communicator> connect() {
  // Static, so that it outlives an exception in the caller: the program can print the error before the destructor ends
  // the other processes.
  static const std::shared_ptr<Communicator> communicator = [] {
    const Launch launch = launch_from_environment();
    return launch.distributed() ? join_mpi(launch) : single_process();
  }();
  return communicator;
}

}  // namespace vitrail::dist
