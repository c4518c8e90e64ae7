// SPDX-License-Identifier: Apache-2.0
// `mpirun -n 2 vitrail train` as a user runs it, including signals and the death of a process.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/train/metrics_comparison.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

// By default Open MPI refuses to run as root or with more processes than cores, uses a copy mechanism that containers
// forbid, and binds processes to cores.  Leak detection is off because Open MPI leaks memory itself.  Runs that start
// at the same time may not create one session folder.
void allow_mpirun(const std::string& session_folder) {
  for (const auto& [name, value] : {std::pair{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                                    {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                    {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
                                    {"OMPI_MCA_hwloc_base_binding_policy", "none"},
                                    {"OMPI_MCA_orte_tmpdir_base", session_folder.c_str()},
                                    {"ASAN_OPTIONS", "detect_leaks=0"}})
    ::setenv(name, value, 1);
}

class MpiTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(testing::program().parent_path() / "vitrail_mpi.so")) GTEST_SKIP() << "built without MPI";
    if (std::system("command -v mpirun >/dev/null") != 0) GTEST_SKIP() << "mpirun is not installed";
    root_ = testing::scratch_folder();
    allow_mpirun(testing::scratch_folder().string());
    write_file(root_ / "recipe.json", tiny_recipe(make_images()));
  }

  // The command line for training in the folder `run` under root_.
  std::vector<std::string> command(int processes, const std::string& run,
                                   const std::vector<std::string>& arguments) const {
    std::vector<std::string> line{"timeout",
                                  "120",
                                  "mpirun",
                                  "-n",
                                  std::to_string(processes),
                                  testing::program().string(),
                                  "train",
                                  (root_ / "recipe.json").string(),
                                  "-o",
                                  (root_ / run).string(),
                                  "--threads",
                                  "1",
                                  "--resume"};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return line;
  }

  // Starts a command whose stdout and stderr go to root_/output.
  pid_t start(std::vector<std::string> line) const {
    std::vector<char*> argv;
    for (std::string& argument : line) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const std::string output = (root_ / "output").string();
    std::fflush(stdout);  // otherwise the child would write the buffered output again
    const pid_t child = ::fork();
    if (child != 0) return child;
    const bool redirected = std::freopen(output.c_str(), "w", stdout) && ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0 &&
                            std::freopen("/dev/null", "r", stdin);
    if (redirected) ::execvp(argv[0], argv.data());
    ::_exit(127);
  }

  static int wait_for(pid_t child) {
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run(const std::vector<std::string>& line) const { return wait_for(start(line)); }
  std::string output() const { return read_text(root_ / "output"); }

  // Waits until metrics.csv has this number of rows, but at most a minute.
  void wait_for_rows(const std::string& run, size_t rows) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (deterministic_columns(root_ / run / "metrics.csv").size() < rows && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  fs::path root_;
};

// Finds the process that trains in `run` with this rank, by the environment variable that mpirun sets; 0 if there is
// none.
pid_t process_of(const fs::path& run, int rank) {
  const std::string variable = std::string("\0OMPI_COMM_WORLD_RANK=", 22) + std::to_string(rank) + '\0';
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && contains(read_text(entry.path() / "cmdline"), run.string()) &&
        contains('\0' + read_text(entry.path() / "environ"), variable))
      return process;
  }
  return 0;
}

TEST_F(MpiTraining, GivesTheLossesOfOneProcessWithTheCompleteBatch) {
  ASSERT_EQ(run(command(1, "one", {})), 0) << output();
  ASSERT_EQ(run(command(2, "two", {"--set", "batch_size=4"})), 0) << output();
  EXPECT_TRUE(contains(output(), "2 processes, 8 images a batch")) << output();
  EXPECT_TRUE(contains(read_text(root_ / "two/summary.json"), "overlapped_seconds"));
  expect_same_losses(root_ / "one", root_ / "two");
}

TEST_F(MpiTraining, EndsIfAProcessDiesAndResumesFromTheLastCheckpoint) {
  const std::vector<std::string> settings{"--set", "epochs=400", "--set", "batch_size=4"};
  const pid_t mpirun = start(command(2, "run", settings));
  wait_for_rows("run", 12);
  const pid_t victim = process_of(root_ / "run", 1);
  ASSERT_GT(victim, 0) << output();
  ::kill(victim, SIGKILL);
  const int status = wait_for(mpirun);
  EXPECT_NE(status, 0);
  EXPECT_NE(status, 124) << "the run reached the time limit";
  EXPECT_TRUE(contains(output(), "rank 1")) << output();
  const Position before = load_latest(root_ / "run/checkpoints/last.safetensors").position;
  EXPECT_GE(before.step, 8);  // every second step is saved, and metrics.csv has at least nine steps
  // Resumes in one process and ends after the current epoch.
  const std::string epochs = "epochs=" + std::to_string(before.epoch + 1);
  EXPECT_EQ(run(command(1, "run", {"--set", epochs, "--set", "batch_size=4", "--allow-changes"})), 0) << output();
  EXPECT_TRUE(contains(output(), "processes: 2 → 1")) << output();
}

TEST_F(MpiTraining, ASignalToOneProcessStopsAll) {
  const pid_t mpirun = start(command(2, "run", {"--set", "epochs=400", "--set", "checkpoint.every_steps=0"}));
  wait_for_rows("run", 4);
  const pid_t signalled = process_of(root_ / "run", 1);
  ASSERT_GT(signalled, 0) << output();
  ::kill(signalled, SIGTERM);
  EXPECT_EQ(wait_for(mpirun), 1) << output();
  EXPECT_TRUE(contains(output(), "continue with --resume")) << output();
  EXPECT_GT(load_checkpoint(root_ / "run/checkpoints/last.safetensors").position.step, 0);
}

TEST_F(MpiTraining, AnErrorNamesTheProcess) {
  ASSERT_NE(run(command(2, "run", {"--set", "batch_size=3"})), 0);
  EXPECT_TRUE(contains(output(), "process 1: loader.batch_size: expected an even number")) << output();
}

}  // namespace
}  // namespace vitrail::train
