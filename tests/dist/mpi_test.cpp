// SPDX-License-Identifier: Apache-2.0
// Tests with real processes: each starts mpirun with two copies of this program, which run one of the DISABLED_
// workers.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <mutex>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/dist/communicator.h"
#include "vitrail/dist/gradient_reducer.h"
#include "vitrail/dist/mpi_communicator_internal.h"

namespace vitrail::dist {
namespace {

using vitrail::testing::contains;
using vitrail::testing::error_of;
using vitrail::testing::scratch_folder;

struct RunResult {
  int status;          // exit status of mpirun; 128 + n: killed by signal n
  std::string output;  // stdout and stderr of all processes and of mpirun
};

// By default Open MPI refuses to run as root or with more processes than cores, uses a copy mechanism that containers
// forbid, and binds processes to cores.  Leak detection is off because Open MPI leaks memory itself.
// Each run has its session folder, because runs that start at the same time may not create one.
constexpr const char* kEnvironment =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none "
    "ASAN_OPTIONS=detect_leaks=0 ";

RunResult run_worker(const std::string& name) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string session = "OMPI_MCA_orte_tmpdir_base='" + scratch_folder().string() + "' ";
  const std::string command = kEnvironment + session + "timeout 120 mpirun -n 2 '" + program +
                              "' --gtest_also_run_disabled_tests --gtest_filter=DISABLED_MpiWorker." + name +
                              " 2>&1 </dev/null";
  FILE* const pipe = ::popen(command.c_str(), "r");
  RunResult result{-1, ""};
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) result.output += static_cast<char>(c);
  const int status = ::pclose(pipe);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::filesystem::path mpi_module_path() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "vitrail_mpi.so";
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(mpi_module_path())) GTEST_SKIP() << "built without MPI";
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
  }
};

TEST_F(Mpi, TwoProcessesSumAndBroadcast) {
  const RunResult result = run_worker("SumsAndBroadcasts");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST_F(Mpi, TwoProcessesAverageGradientsDuringTheBackwardPass) {
  const RunResult result = run_worker("AveragesGradients");
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST_F(Mpi, AKilledProcessEndsTheRunAndItsRankIsNamed) {
  const RunResult result = run_worker("IsKilled");
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.status, 124) << "the run reached the time limit";
  EXPECT_TRUE(contains(result.output, "rank 1")) << result.output;
}

TEST_F(Mpi, AProcessThatExitsOnAnErrorEndsTheRunAndItsRankIsNamed) {
  const RunResult result = run_worker("ExitsOnAnError");
  EXPECT_NE(result.status, 0);
  EXPECT_NE(result.status, 124) << "the run reached the time limit";
  EXPECT_TRUE(contains(result.output, "rank 1")) << result.output;
  EXPECT_TRUE(contains(result.output, "error of rank 1")) << result.output;
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
  std::string text = rank == 1 ? "from rank 1 only" : std::string(16, '.');
  communicator->broadcast(text.data(), text.size(), 1);
  EXPECT_EQ(text, "from rank 1 only");
  for (const int root : {-1, 2}) {
    EXPECT_ERROR(error_of([&] { communicator->broadcast(text.data(), text.size(), root); }), "broadcast",
                 std::to_string(root));
  }
  std::vector<double> doubles(30011, 0.25);
  for (size_t i = 0; i < doubles.size(); ++i) doubles[i] = static_cast<double>(i) + rank * 0x1p-30;
  communicator->all_reduce_sum(doubles.data(), static_cast<int64_t>(doubles.size()) - 1);
  for (size_t i = 0; i + 1 < doubles.size(); ++i) ASSERT_EQ(doubles[i], 2 * static_cast<double>(i) + 0x1p-30);
  EXPECT_EQ(doubles.back(), 30010 + rank * 0x1p-30) << "it is not in the sum";
  std::vector<int> numbers(50021, rank);
  communicator->broadcast(numbers.data(), numbers.size() * sizeof(int), 0);
  EXPECT_EQ(numbers, std::vector<int>(50021, 0));
  communicator->broadcast(nullptr, 0, 1);
  communicator->barrier();
  communicator->finish();
  EXPECT_NO_THROW(communicator->finish()) << "it is finished already";
}

// The environment and the module may be of two installations of MPI.
TEST_F(Mpi, AnEnvironmentOfAnotherMpiIsAnError) {
  const RunResult result = run_worker("IsOfAnotherMpi");
  for (const char* rank : {"0", "1"}) {
    EXPECT_TRUE(contains(result.output, std::string("mpi: expected process ") + rank +
                                            " of 3, as the environment says, got " + rank +
                                            " of 2: mpirun belongs to another MPI than the module"))
        << result.output;
  }
}

TEST(DISABLED_MpiWorker, IsOfAnotherMpi) {
  const Launch launch{.rank = launch_from_environment().rank, .size = 3};
  std::cout << error_of([&] { join_mpi(launch); }) << std::endl;
}

TEST_F(Mpi, OfTheHostProgramIsNotFinalised) {
  const RunResult result = run_worker("IsOfTheHostProgram");
  EXPECT_EQ(result.status, 0) << result.output;
}

// Function `name` of the MPI that the module is linked with.
template <class Function>
Function* mpi_function(const char* name) {
  static void* const module = ::dlopen(mpi_module_path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  return reinterpret_cast<Function*>(::dlsym(module, name));
}

TEST(DISABLED_MpiWorker, IsOfTheHostProgram) {
  constexpr int kSerialized = 2;  // MPI_THREAD_SERIALIZED of Open MPI and of MPICH
  auto* const initialize = mpi_function<int(int*, char***, int, int*)>("MPI_Init_thread");
  auto* const is_finalized = mpi_function<int(int*)>("MPI_Finalized");
  auto* const finalize = mpi_function<int()>("MPI_Finalize");
  ASSERT_TRUE(initialize != nullptr && is_finalized != nullptr && finalize != nullptr);
  int provided = 0, finalized = 1;
  ASSERT_EQ(initialize(nullptr, nullptr, kSerialized, &provided), 0);
  const auto communicator = connect();
  EXPECT_EQ(communicator->size(), 2);
  communicator->finish();
  is_finalized(&finalized);
  EXPECT_EQ(finalized, 0);
  EXPECT_EQ(finalize(), 0);
}

// Passes calls on, and knows how many all-reduces are done.
class CountingCommunicator : public Communicator {
 public:
  explicit CountingCommunicator(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  int rank() const override { return communicator_->rank(); }
  int size() const override { return communicator_->size(); }
  void all_reduce_sum(float* data, int64_t n) override {
    communicator_->all_reduce_sum(data, n);
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
  void all_reduce_sum(double* data, int64_t n) override { communicator_->all_reduce_sum(data, n); }
  void broadcast(void* data, size_t bytes, int root) override { communicator_->broadcast(data, bytes, root); }
  void barrier() override { communicator_->barrier(); }
  void finish() override { communicator_->finish(); }

  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= count; });
  }

 private:
  std::shared_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int done_ = 0;
};

// Each layer of the backward pass waits for the bucket of the layers before it: a reducer that kept the buckets until
// the end of the pass would never return, and the run would reach its time limit.
TEST(DISABLED_MpiWorker, AveragesGradients) {
  const auto communicator = std::make_shared<CountingCommunicator>(connect());
  std::vector<Tensor> gradients;
  for (int i = 0; i < 12; ++i) gradients.push_back(Tensor::full({300000}, (communicator->rank() + 1) * (i + 1)));
  GradientReducer reducer(communicator, gradients, {.bucket_bytes = 2 << 20});  // two gradients of 1.2 MB
  reducer.begin();
  for (size_t p = gradients.size(); p-- > 0;) {
    reducer.ready(p, gradients[p]);
    communicator->wait_for(static_cast<int>(gradients.size() - p) / 2);
  }
  reducer.finish();
  for (size_t p = 0; p < gradients.size(); ++p) {
    for (int64_t i = 0; i < 300000; i += 997) ASSERT_EQ(gradients[p].data<float>()[i], 1.5f * (p + 1));
  }
  EXPECT_EQ(reducer.last_pass().buckets, 6);
  EXPECT_EQ(reducer.last_pass().bytes, 12 * 300000 * 4);
  communicator->finish();
}

TEST(DISABLED_MpiWorker, IsKilled) {
  const auto communicator = connect();
  communicator->barrier();
  if (communicator->rank() == 1) ::raise(SIGKILL);
  communicator->barrier();
}

void fail_on_rank_one() {
  set_warning_callback([](const std::string& message) { std::cerr << message << std::endl; });
  const auto communicator = connect();
  communicator->barrier();
  if (communicator->rank() == 1) throw Error("error of rank 1");
  communicator->barrier();
}

TEST(DISABLED_MpiWorker, ExitsOnAnError) {
  try {
    fail_on_rank_one();
  } catch (const Error& error) {  // as a program's main does
    std::cout << error.what() << std::endl;
    std::exit(1);
  }
}

}  // namespace
}  // namespace vitrail::dist
