// SPDX-License-Identifier: Apache-2.0
// Real processes: each test starts mpirun with two copies of this program, which run one of the DISABLED_ workers.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include "tests/support/messages.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/dist/gradient_reducer.h"

namespace vitrail::dist {
namespace {

using testing::contains;

struct Ended {
  int status;
  std::string output;  // both streams of all processes and mpirun's own
};

// mpirun refuses root and more processes than cores unless it is told; containers forbid its way of copying between
// processes; two processes bound to a core each would be more than a test machine may have; and what Open MPI itself
// never frees is no leak of ours.
constexpr const char* kEnvironment =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none "
    "ASAN_OPTIONS=detect_leaks=0 ";

Ended run_worker(const std::string& name) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = std::string(kEnvironment) + "timeout 120 mpirun -n 2 '" + program +
                              "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_MpiWorker." + name +
                              " 2>&1 </dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  Ended ended{-1, ""};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) ended.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  ended.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
    if (!std::filesystem::exists(folder / "vitrail_mpi.so")) GTEST_SKIP() << "built without MPI";
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  }
};

TEST_F(Mpi, TwoProcessesSumAndBroadcast) {
  const Ended ended = run_worker("SumsAndBroadcasts");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_F(Mpi, TwoProcessesAverageGradientsDuringTheBackwardPass) {
  const Ended ended = run_worker("AveragesGradients");
  EXPECT_EQ(ended.status, 0) << ended.output;
}

TEST_F(Mpi, AProcessThatIsKilledEndsTheRunWithItsNumberNamed) {
  const Ended ended = run_worker("IsKilled");
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.status, 124) << "the run went on until the time limit";
  EXPECT_TRUE(contains(ended.output, "rank 1")) << ended.output;
}

TEST_F(Mpi, AProcessThatLeavesOnAnErrorEndsTheRunWithItsNumberNamed) {
  const Ended ended = run_worker("LeavesOnAnError");
  EXPECT_NE(ended.status, 0);
  EXPECT_NE(ended.status, 124) << "the run went on until the time limit";
  EXPECT_TRUE(contains(ended.output, "rank 1")) << ended.output;
  EXPECT_TRUE(contains(ended.output, "told before")) << ended.output;
}

TEST(DISABLED_MpiWorker, SumsAndBroadcasts) {
  const auto communicator = connect();
  const int rank = communicator->rank();
  ASSERT_EQ(communicator->size(), 2);
  EXPECT_EQ(connect(), communicator);
  std::vector<float> floats(100003);
  for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>((rank + 1) * i);
  communicator->all_reduce_sum(floats.data(), static_cast<int64_t>(floats.size()));
  for (size_t i = 0; i < floats.size(); ++i) ASSERT_EQ(floats[i], static_cast<float>(3 * i));
  double number = rank + 0.5;
  communicator->all_reduce_sum(&number, 1);
  EXPECT_EQ(number, 2.0);
  communicator->all_reduce_sum(&number, 0);
  std::string text = rank == 1 ? "from process one" : std::string(16, '.');
  communicator->broadcast(text.data(), text.size(), 1);
  EXPECT_EQ(text, "from process one");
  communicator->barrier();
  communicator->finish();
}

TEST(DISABLED_MpiWorker, AveragesGradients) {
  const auto communicator = connect();
  std::vector<Tensor> gradients;
  for (int i = 0; i < 12; ++i) gradients.push_back(Tensor::full({300000}, (communicator->rank() + 1) * (i + 1)));
  GradientReducer reducer(communicator, gradients, {.bucket_bytes = 2 << 20});
  reducer.begin();
  for (size_t p = gradients.size(); p-- > 0;) {
    reducer.ready(p, gradients[p]);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // what a layer's backward takes
  }
  reducer.finish();
  for (size_t p = 0; p < gradients.size(); ++p) {
    for (int64_t i = 0; i < 300000; i += 997) ASSERT_EQ(gradients[p].data<float>()[i], 1.5f * (p + 1));
  }
  const ReducerTimes times = reducer.last();
  EXPECT_GT(times.overlapped, 0);  // how much, depends on what else the machine does: an exchange after the pass has 0
  RecordProperty("communication_ms", static_cast<int>(times.communication * 1e3));
  std::cout << "process " << communicator->rank() << ": " << times.bytes / 1e6 << " MB in " << times.buckets
            << " buckets, " << times.communication * 1e3 << " ms of exchange, " << times.overlapped * 1e3
            << " ms of it during the pass, " << times.waited * 1e3 << " ms waited" << std::endl;
  communicator->finish();
}

TEST(DISABLED_MpiWorker, IsKilled) {
  const auto communicator = connect();
  communicator->barrier();
  if (communicator->rank() == 1) ::raise(SIGKILL);
  communicator->barrier();
}

void fail_on_process_one() {
  set_warning_callback([](const std::string& message) { std::cerr << message << std::endl; });
  const auto communicator = connect();
  communicator->barrier();
  if (communicator->rank() == 1) throw Error("told before");
  communicator->barrier();
}

TEST(DISABLED_MpiWorker, LeavesOnAnError) {
  try {
    fail_on_process_one();
  } catch (const Error& error) {  // as a program's main does
    std::cout << error.what() << std::endl;
    std::exit(1);
  }
}

}  // namespace
}  // namespace vitrail::dist
